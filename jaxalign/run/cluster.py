"""Many machines: the parts of a job as tasks on Ray (``jaxalign[cluster]``)."""


def stream(task, some, address, progress=None, busy=None):
    raise NotImplementedError
