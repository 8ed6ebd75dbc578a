from bedrax.image import ResizeMethod as ResizeMethod, resize as resize, scale_and_translate as scale_and_translate
