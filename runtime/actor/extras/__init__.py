"""What few actors have, beside a mailbox and a life.

    timers      messages to oneself, later
    table       timers and messages put aside, for each actor that has used them
    watching    who is told when another actor ends
    pool        several actors behind one ref

It must never cost anything to an actor that uses none of it.
"""
