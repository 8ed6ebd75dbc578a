from bedrax.extend.unsupported import BCOO as BCOO, BCSR as BCSR, JAXSparse as JAXSparse
