"""How the records of families are checked by effect; :func:`deixis.models.checks.check_vlm` is the way in."""
