"""Patterns of cooperation, built from the other agents.

There are two patterns, `supervisor` and `plan_execute`:

    supervisor        one agent that decides, and others that report to it
    plain_roles       these roles, performed by plain agents; the values they exchange
    plan_execute      a planner, an executor, and a replanner in a loop

They use nothing of the runtime that a user's own agent could not use.
"""

from .plan_execute import PlanExecute, make_executor, make_planner, make_replanner
from .supervisor import Supervisor

__all__ = ["PlanExecute", "Supervisor", "make_executor", "make_planner", "make_replanner"]
