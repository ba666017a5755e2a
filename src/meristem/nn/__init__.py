"""The models: one equation per file."""

from meristem.nn.body import Body as Body
from meristem.nn.budding import Bud as Bud, Budding as Budding
from meristem.nn.growth import GrowthInfo as GrowthInfo, grow as grow, resize as resize
from meristem.nn.highway import Highway as Highway
from meristem.nn.linear import Linear as Linear
from meristem.nn.network import Network as Network
from meristem.nn.stack import Plain as Plain, Residual as Residual
from meristem.nn.tunnel import Tunnel as Tunnel
