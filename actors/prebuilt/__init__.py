"""Ways of working together that are made of the other agents: `supervisor` and `plan_execute`."""

from .plan_execute import PlanExecute, make_executor, make_planner, make_replanner
from .supervisor import Supervisor

__all__ = ["PlanExecute", "Supervisor", "make_executor", "make_planner", "make_replanner"]
