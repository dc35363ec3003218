"""Whether a call may be made: the approver, saved approvals, and the broker that asks a person."""
