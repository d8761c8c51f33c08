"""The saves of one run's checkpoint.

Owns where they are, and which of them were answered. Its files:

    save_slot       where the saves of a checkpoint are
    answer_mark     that an interrupt was answered, once

It must never write: what is to be written is returned.
"""
