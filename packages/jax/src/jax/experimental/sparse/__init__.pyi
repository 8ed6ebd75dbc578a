from bedrax.extend.sparse import BCOO as BCOO, BCSR as BCSR, JAXSparse as JAXSparse
