"""Files: networks and training states as safetensors with a JSON header; never pickle, nothing from a file is executed."""

from meristem.files.document import (
    Document as Document,
    about as about,
    read as read,
    read_document as read_document,
    write_document as write_document,
)
from meristem.files.network import load as load, pack_network as pack_network, save as save, unpack_network as unpack_network
from meristem.files.run import pack_state as pack_state, unpack_state as unpack_state
from meristem.files.arrays import under as under, within as within
