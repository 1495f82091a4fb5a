"""Two seconds of moving gradients, 320 x 180, 4:2:0, for a video encoder."""
w, h = 320, 180
with open("clip.y4m", "wb") as f:
    f.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n" % (w, h))
    for t in range(50):
        f.write(b"FRAME\n")
        f.write(bytes((x * 3 + y * 2 + t * 7 + (x * y * t) // 997) & 255 for y in range(h) for x in range(w)))
        f.write(bytes((x + t * 3) & 255 for y in range(h // 2) for x in range(w // 2)))
        f.write(bytes((y * 2 + t) & 255 for y in range(h // 2) for x in range(w // 2)))
