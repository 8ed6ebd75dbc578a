from bedrax.extend.api_util import safe_map as safe_map, safe_zip as safe_zip
