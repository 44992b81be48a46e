"""Side data: columns about users and items as features."""
