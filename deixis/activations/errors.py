"""What can be wrong with a run; each is one sentence with the way out."""


class RunError(ValueError):
    """A run cannot be recorded or read."""


class NotARunError(RunError):
    """The path holds no run."""


class SchemaError(RunError):
    """The run was written by a version of deixis that lays runs out in another way."""


class SettingsError(RunError):
    """The path holds a run that was recorded with other settings."""


class LockedRunError(RunError):
    """Another process is recording into the run."""


class UnfinishedRunError(RunError):
    """Some of the run's items have not been recorded yet."""


class DamagedShardError(RunError):
    """A shard is missing, truncated or changed."""


class DiskError(OSError):
    """The run's directory cannot be written to."""


class NonFiniteError(RunError):
    """The model held NaN or infinite activations."""
