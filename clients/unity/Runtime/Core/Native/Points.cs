using System;
using System.Runtime.InteropServices;

namespace Volsfu.Native
{
    /// <summary>
    /// Points in memory that the library writes to: three coordinates and four bytes of colour (red, green, blue, alpha) for
    /// each. The arrays are pinned and reused, and grow when a frame has more points. Dispose ends the pinning, and so does the
    /// garbage collector for a buffer that the program has forgotten.
    /// </summary>
    public sealed unsafe class PointBuffer : IDisposable
    {
        GCHandle pinnedPositions, pinnedColors;
        int count;

        public PointBuffer(int capacity)
        {
            Reserve(Math.Max(capacity, 1));
        }

        ~PointBuffer()
        {
            Dispose();
        }

        /// <summary>The coordinates, right-handed: x right, y up, z towards the viewer.</summary>
        public float[] Positions { get; private set; }

        public byte[] Colors { get; private set; }

        /// <summary>The number of points, at most Capacity.</summary>
        public int Count
        {
            get { return count; }
            set
            {
                if (value < 0 || value > Capacity)
                {
                    throw new ArgumentOutOfRangeException("value", value, "expected 0 to " + Capacity);
                }
                count = value;
            }
        }

        public int Capacity { get { return Positions == null ? 0 : Positions.Length / 3; } }

        /// <summary>Makes room for points. The points are lost if there was less room.</summary>
        public void Reserve(int capacity)
        {
            if (capacity <= Capacity)
            {
                return;
            }
            Dispose();
            Positions = new float[3 * capacity];
            Colors = new byte[4 * capacity];
            pinnedPositions = GCHandle.Alloc(Positions, GCHandleType.Pinned);
            pinnedColors = GCHandle.Alloc(Colors, GCHandleType.Pinned);
        }

        public void Dispose()
        {
            if (Positions == null)
            {
                return;
            }
            pinnedPositions.Free();
            pinnedColors.Free();
            Positions = null;
            Colors = null;
            Count = 0;
        }

        /// <summary>
        /// Sets the points of the pixels of a raster that have one, row by row, as ReceivedTile.Decode does for the same frame,
        /// but without decoding again.
        /// </summary>
        public void Set(RasterBuffer raster)
        {
            Reserve(raster.Count);
            double[] r = raster.Rotation, p = raster.Position;
            int points = 0;
            for (int i = 0; i < raster.Count; i++)
            {
                double d = raster.Depths[i];
                if (!(d > 0))
                {
                    continue;
                }
                double x = raster.Rays[2 * i] * d, y = -raster.Rays[2 * i + 1] * d;
                for (int axis = 0; axis < 3; axis++)
                {
                    Positions[3 * points + axis] = (float)(r[3 * axis] * x + r[3 * axis + 1] * y - r[3 * axis + 2] * d + p[axis]);
                }
                for (int component = 0; component < 4; component++)
                {
                    Colors[4 * points + component] = raster.Colors[4 * i + component];
                }
                points++;
            }
            Count = points;
        }

        /// <summary>The buffer as the library gets it.</summary>
        internal PointsStruct Struct()
        {
            return new PointsStruct
            {
                Size = (uint)sizeof(PointsStruct), ColorBytes = 4, Positions = (float*)pinnedPositions.AddrOfPinnedObject(),
                Colors = (byte*)pinnedColors.AddrOfPinnedObject(), Capacity = (UIntPtr)Capacity, Count = (UIntPtr)Count
            };
        }
    }

    /// <summary>
    /// A rectangle of a depth camera's image, in pinned arrays like those of PointBuffer. The point of a pixel with depth d and
    /// ray (x, y) is Rotation * (x * d, -y * d, -d) + Position; it is d * 2^Reduction / FocalX metres wide.
    /// </summary>
    public sealed unsafe class RasterBuffer : IDisposable
    {
        GCHandle pinnedDepths, pinnedColors, pinnedRays;
        readonly double[] position = new double[3], rotation = new double[9];

        public RasterBuffer(int capacity)
        {
            Reserve(Math.Max(capacity, 1));
        }

        ~RasterBuffer()
        {
            Dispose();
        }

        /// <summary>The depths in metres, row by row; 0 for a pixel without a point.</summary>
        public float[] Depths { get; private set; }

        public byte[] Colors { get; private set; }

        /// <summary>Two coordinates for each pixel: where its ray crosses the plane at depth 1, x right, y down.</summary>
        public float[] Rays { get; private set; }

        public int Count { get; private set; }
        public int Width { get; private set; }
        public int Height { get; private set; }

        /// <summary>The number of the camera within the publication.</summary>
        public int Camera { get; private set; }

        public int Reduction { get; private set; }
        public double FocalX { get; private set; }
        public double FocalY { get; private set; }
        public double[] Position { get { return position; } }

        /// <summary>The rows of the camera's rotation.</summary>
        public double[] Rotation { get { return rotation; } }

        public int Capacity { get { return Depths == null ? 0 : Depths.Length; } }

        void Reserve(int capacity)
        {
            if (capacity <= Capacity)
            {
                return;
            }
            Dispose();
            Depths = new float[capacity];
            Colors = new byte[4 * capacity];
            Rays = new float[2 * capacity];
            pinnedDepths = GCHandle.Alloc(Depths, GCHandleType.Pinned);
            pinnedColors = GCHandle.Alloc(Colors, GCHandleType.Pinned);
            pinnedRays = GCHandle.Alloc(Rays, GCHandleType.Pinned);
        }

        public void Dispose()
        {
            if (Depths == null)
            {
                return;
            }
            pinnedDepths.Free();
            pinnedColors.Free();
            pinnedRays.Free();
            Depths = null;
            Colors = null;
            Rays = null;
            Count = 0;
        }

        /// <summary>Decodes a frame of "rgbd".</summary>
        internal void Decode(uint codec, byte* data, UIntPtr length)
        {
            var r = new RasterStruct { Size = (uint)sizeof(RasterStruct), ColorBytes = 4 };
            while (true)
            {
                r.Depths = (float*)pinnedDepths.AddrOfPinnedObject();
                r.Colors = (byte*)pinnedColors.AddrOfPinnedObject();
                r.Rays = (float*)pinnedRays.AddrOfPinnedObject();
                r.Capacity = (UIntPtr)Capacity;
                int status = Library.volsfu_decode_raster((byte*)&codec, data, length, &r);
                if (status != VolsfuException.Buffer)
                {
                    Native.Check(status);
                    break;
                }
                Reserve((int)r.Count + (int)r.Count / 4);
            }
            Count = (int)r.Count;
            Width = (int)r.Width;
            Height = (int)r.Height;
            Camera = (int)r.Camera;
            Reduction = (int)r.Reduction;
            FocalX = r.Focal[0];
            FocalY = r.Focal[1];
            for (int i = 0; i < 3; i++)
            {
                position[i] = r.Position[i];
            }
            for (int i = 0; i < 9; i++)
            {
                rotation[i] = r.Rotation[i];
            }
        }
    }

    /// <summary>The codecs of the library.</summary>
    public static unsafe class Codecs
    {
        /// <summary>The codecs as JSON: {"codecs": [{"name", "fourcc", "encodes", "max_points"}]}.</summary>
        public static string List()
        {
            Native.CheckVersion();
            return Native.Read(Library.volsfu_get_codecs);
        }

        /// <summary>
        /// Encodes the points of a buffer as one frame of a codec such as "zstd", and returns the length of the frame. The
        /// array grows if the frame does not fit. Points outside of the box are moved to it; bits is the number of bits per
        /// coordinate.
        /// </summary>
        public static int Encode(PointBuffer points, string codec, Box box, int bits, ref byte[] frame)
        {
            var encoding = new EncodingStruct { Size = (uint)sizeof(EncodingStruct), Codec = Native.FourCC(codec), PositionBits = (uint)bits, Box = box.Struct() };
            PointsStruct from = points.Struct();
            while (true)
            {
                UIntPtr length;
                int status;
                fixed (byte* to = frame)
                {
                    status = Library.volsfu_encode(&encoding, &from, to, (UIntPtr)frame.Length, &length);
                }
                if (status != VolsfuException.Buffer)
                {
                    // Otherwise the finalizer may end the pinning during the call.
                    GC.KeepAlive(points);
                    Native.Check(status);
                    return (int)length;
                }
                frame = new byte[(int)length + (int)length / 4];
            }
        }

        /// <summary>Decodes a frame to a buffer.</summary>
        internal static void Decode(uint codec, byte* data, UIntPtr length, PointBuffer into)
        {
            while (true)
            {
                PointsStruct to = into.Struct();
                int status = Library.volsfu_decode((byte*)&codec, data, length, &to);
                if (status != VolsfuException.Buffer)
                {
                    Native.Check(status);
                    into.Count = (int)to.Count;
                    return;
                }
                into.Reserve((int)to.Count + (int)to.Count / 4);
            }
        }
    }

    /// <summary>A box in the coordinates of an object.</summary>
    public struct Box
    {
        public float MinX, MinY, MinZ, MaxX, MaxY, MaxZ;

        public Box(float minX, float minY, float minZ, float maxX, float maxY, float maxZ)
        {
            MinX = minX;
            MinY = minY;
            MinZ = minZ;
            MaxX = maxX;
            MaxY = maxY;
            MaxZ = maxZ;
        }

        internal unsafe BoxStruct Struct()
        {
            var box = new BoxStruct();
            box.Min[0] = MinX;
            box.Min[1] = MinY;
            box.Min[2] = MinZ;
            box.Max[0] = MaxX;
            box.Max[1] = MaxY;
            box.Max[2] = MaxZ;
            return box;
        }
    }
}
