"""Files: what `save` writes and `load` reads; safetensors with a JSON header, never pickle, nothing from a file is executed."""

from meristem.files.kinds import FileKind as FileKind, load as load, register as register, save as save
