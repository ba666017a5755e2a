"""Files: what `save` writes and `load` reads; safetensors with a JSON header, never pickle, nothing from a file is executed."""

from meristem.files.kinds import load as load, save as save
