"""Ways of working together that are made of the other agents.

Owns two patterns, `supervisor` and `plan_execute`, each a definition that is built of others:

    supervisor      one agent that decides, and others that answer to it
    plan            what the roles of a plan tell one another by session values
    plain_roles     these roles, played by plain agents
    plan_execute    a planner, an executor, and a replanner in a loop

It must never need anything of the runtime that a user's own agent could not have.
"""

from .plan_execute import PlanExecute, make_executor, make_planner, make_replanner
from .supervisor import Supervisor

__all__ = ["PlanExecute", "Supervisor", "make_executor", "make_planner", "make_replanner"]
