"""The conversion policy: which device stands for a legacy request, and which requests are left alone."""

from gpu2dra.policy.model import BUILT_IN, LeftAlone, Outcome, Policy, PolicyError, Preemption, Problem, Rule

__all__ = ["BUILT_IN", "LeftAlone", "Outcome", "Policy", "PolicyError", "Preemption", "Problem", "Rule"]
