"""The models, their parts and what is done to them."""

from meristem.nn.body import Body as Body, Dormant as Dormant, GrowthInfo as GrowthInfo, Part as Part
from meristem.nn.budding import Bud as Bud, Budding as Budding
from meristem.nn.conv_branch import ConvBranch as ConvBranch
from meristem.nn.conv_inverted import ConvInverted as ConvInverted
from meristem.nn.conv_tunnel import ConvTunnel as ConvTunnel
from meristem.nn.image_ends import Downsample as Downsample, ImageStem as ImageStem
from meristem.nn.linear import Linear as Linear, PooledLinear as PooledLinear
from meristem.nn.model_growth import grow as grow, resize as resize
from meristem.nn.network import Network as Network
from meristem.nn.stack import Highway as Highway, Plain as Plain, Residual as Residual, Tunnel as Tunnel
from meristem.nn.stages import Stages as Stages
from meristem.nn.structure import Gates as Gates, Nodes as Nodes, structure as structure, structures as structures
