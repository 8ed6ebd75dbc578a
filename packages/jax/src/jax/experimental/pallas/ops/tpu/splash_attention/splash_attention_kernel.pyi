from bedrax.extend.unsupported import SegmentIds as SegmentIds, make_splash_mha as make_splash_mha  # keras
