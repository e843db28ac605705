using System;

namespace Volsfu.Native
{
    /// <summary>A published object. Dispose ends the publication.</summary>
    public sealed unsafe class Publisher : IDisposable
    {
        readonly ulong handle;

        internal Publisher(ulong handle)
        {
            this.handle = handle;
        }

        /// <summary>Reports whether a tile has a receiver at a quality and the uplink can carry it. Ask before encoding.</summary>
        public bool Wanted(int tile, int quality)
        {
            return Native.Check(Library.volsfu_wanted(handle, tile, quality)) == 1;
        }

        /// <summary>
        /// Sends a frame. number counts captures and is the same for all tiles and qualities of one. Returns false if there is no
        /// connection at present: drop the frame, and continue. captureMicroseconds is the time since 1970 by this host's clock,
        /// 0 for now.
        /// </summary>
        public bool Write(int tile, int quality, uint number, string codec, byte[] data, int length, long captureMicroseconds = 0)
        {
            if (length < 0 || length > data.Length)
            {
                throw new ArgumentOutOfRangeException("length", length, "expected 0 to " + data.Length);
            }
            fixed (byte* from = data)
            {
                return Write(tile, quality, number, codec, (IntPtr)from, length, captureMicroseconds);
            }
        }

        /// <summary>Sends a frame from memory of the program.</summary>
        public bool Write(int tile, int quality, uint number, string codec, IntPtr data, int length, long captureMicroseconds = 0)
        {
            var frame = new OutgoingFrameStruct
            {
                Size = (uint)sizeof(OutgoingFrameStruct), Number = number, Codec = Native.FourCC(codec), CaptureUs = captureMicroseconds,
                Data = (byte*)data, Length = (UIntPtr)length
            };
            int status = Library.volsfu_write_frame(handle, tile, quality, &frame);
            if (status == VolsfuException.NotConnected)
            {
                return false;
            }
            Native.Check(status);
            return true;
        }

        /// <summary>Sends the pose of the object in the room's coordinates; Coordinates converts those of Unity.</summary>
        public void SetPose(double[] position, double[] orientation, double scale)
        {
            var pose = new PoseStruct { Size = (uint)sizeof(PoseStruct), Scale = scale };
            for (int i = 0; i < 3; i++)
            {
                pose.Position[i] = position[i];
            }
            for (int i = 0; i < 4; i++)
            {
                pose.Orientation[i] = orientation[i];
            }
            Native.Check(Library.volsfu_set_pose(handle, &pose));
        }

        public void Dispose()
        {
            Library.volsfu_unpublish(handle);
        }
    }

    /// <summary>Published sound: one channel of 48,000 samples per second, from -1 to 1. Dispose ends the publication.</summary>
    public sealed unsafe class SoundPublisher : IDisposable
    {
        readonly ulong handle;

        internal SoundPublisher(ulong handle)
        {
            this.handle = handle;
        }

        /// <summary>
        /// Sends samples, at most 48,000, the last of which was captured now. Returns false if there is no connection at present.
        /// </summary>
        public bool Write(float[] samples, int begin, int count)
        {
            if (begin < 0 || count < 0 || count > samples.Length - begin)
            {
                throw new ArgumentOutOfRangeException("count", count, "expected samples within an array of " + samples.Length);
            }
            fixed (float* from = samples)
            {
                int status = Library.volsfu_write_sound(handle, from + begin, (UIntPtr)count, 0);
                if (status == VolsfuException.NotConnected)
                {
                    return false;
                }
                Native.Check(status);
                return true;
            }
        }

        public void Dispose()
        {
            Library.volsfu_unpublish(handle);
        }
    }

    /// <summary>The sound of a publication of another participant, for a callback of a sound card.</summary>
    public sealed unsafe class Listener : IDisposable
    {
        readonly ulong handle;

        internal Listener(ulong handle)
        {
            this.handle = handle;
        }

        /// <summary>
        /// Stores the next samples, at most 48,000, without waiting, and zeros after the last of them. Returns the number of
        /// samples before the zeros. After the end of the session or of the listener, all are zeros.
        /// </summary>
        public int Read(float[] samples, int begin, int count)
        {
            if (begin < 0 || count < 0 || count > samples.Length - begin)
            {
                throw new ArgumentOutOfRangeException("count", count, "expected samples within an array of " + samples.Length);
            }
            fixed (float* to = samples)
            {
                UIntPtr heard;
                if (Library.volsfu_read_sound(handle, to + begin, (UIntPtr)count, &heard) < 0)
                {
                    Array.Clear(samples, begin, count);
                    return 0;
                }
                return (int)heard;
            }
        }

        public void Dispose()
        {
            Library.volsfu_end_listening(handle);
        }
    }
}
