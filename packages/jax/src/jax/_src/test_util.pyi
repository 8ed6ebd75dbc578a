from bedrax.autodiff.checking import check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp
from bedrax.extend.small_meshes import create_mesh as create_mesh
