"""What can be wrong with an edit; each kind has a name, and all are ValueErrors."""


class EditError(ValueError):
    """An edit that can't be made as it was asked for."""


class NeverFiredError(EditError):
    """The edited module did not run, or nothing stood at the edited positions."""


class TokenCountError(EditError):
    """A donor and its receiver have different numbers of tokens, so that they can't be laid over each other."""


class DonorCountError(EditError):
    """There are neither as many donors as items nor one for all."""


class NoSuchSiteError(EditError):
    """The model has no such site, or not at this layer."""


class DirectionError(EditError):
    """A direction that does not belong to this model: another width, other weights, another revision."""
