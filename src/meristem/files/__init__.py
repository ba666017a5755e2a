"""Files: what `save` writes and `load` reads, as safetensors with a JSON header; no pickle, nothing in a file is executed."""

from meristem.files.file_kinds import FileKind as FileKind, load as load, register as register, save as save
