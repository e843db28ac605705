using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Volsfu.Native
{
    /// <summary>
    /// A frame of a tile, as the publisher has encoded it. The object is reused for the next frame, and holds its frame until
    /// then, or until Release.
    /// </summary>
    public sealed unsafe class ReceivedTile : IDisposable
    {
        FrameStruct* frame;

        public ReceivedTile()
        {
            frame = (FrameStruct*)Marshal.AllocHGlobal(sizeof(FrameStruct));
            *frame = new FrameStruct { Size = (uint)sizeof(FrameStruct) };
        }

        ~ReceivedTile()
        {
            Free();
        }

        internal FrameStruct* Frame
        {
            get
            {
                if (frame == null)
                {
                    throw new ObjectDisposedException("ReceivedTile");
                }
                return frame;
            }
        }

        public string Participant { get; internal set; }
        public string Publication { get; internal set; }
        public int Tile { get { return Frame->Tile; } }
        public int Quality { get { return Frame->Quality; } }
        public long Number { get { return Frame->Number; } }

        /// <summary>The capture time in microseconds since 1970 by the server's clock; 0 if unknown.</summary>
        public long CaptureMicroseconds { get { return Frame->CaptureUs; } }

        /// <summary>The bytes of the frame, which Data points to; 0 for a tile without points.</summary>
        public int Length { get { return (int)Frame->Length; } }

        public IntPtr Data { get { return (IntPtr)Frame->Data; } }

        /// <summary>Reports whether the frame is a raster of a depth camera, which DecodeRaster reads.</summary>
        public bool IsRaster { get { return Frame->Codec == Native.FourCC("rgbd"); } }

        /// <summary>Decodes the frame to points.</summary>
        public void Decode(PointBuffer into)
        {
            Codecs.Decode(Frame->Codec, Frame->Data, Frame->Length, into);
            // Otherwise the finalizer may release the frame during the call.
            GC.KeepAlive(this);
        }

        /// <summary>
        /// Decodes the frame to memory of the program with room for capacity points: three floats and four bytes of colour each,
        /// such as those of a NativeArray. Returns the number of points. If the number is above capacity, no point is written.
        /// </summary>
        public int Decode(IntPtr positions, IntPtr colors, int capacity)
        {
            uint codec = Frame->Codec;
            var to = new PointsStruct
            {
                Size = (uint)sizeof(PointsStruct), ColorBytes = 4, Positions = (float*)positions, Colors = (byte*)colors, Capacity = (UIntPtr)capacity
            };
            int status = Library.volsfu_decode((byte*)&codec, Frame->Data, Frame->Length, &to);
            GC.KeepAlive(this);
            if (status != VolsfuException.Buffer)
            {
                Native.Check(status);
            }
            return (int)to.Count;
        }

        /// <summary>Decodes a frame of a depth camera to its raster.</summary>
        public void Decode(RasterBuffer into)
        {
            into.Decode(Frame->Codec, Frame->Data, Frame->Length);
            GC.KeepAlive(this);
        }

        /// <summary>Releases the frame, if there is one.</summary>
        public void Release()
        {
            if (Frame->Handle != 0)
            {
                Native.Check(Library.volsfu_release_frame(frame));
            }
            GC.KeepAlive(this);
        }

        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        void Free()
        {
            if (frame == null)
            {
                return;
            }
            if (frame->Handle != 0)
            {
                Library.volsfu_release_frame(frame);
            }
            Marshal.FreeHGlobal((IntPtr)frame);
            frame = null;
        }
    }

    /// <summary>The kinds of events. volsfu.h explains them.</summary>
    public enum EventKind
    {
        Connected = 1, Interrupted, Resumed, Closing, ParticipantJoined, ParticipantLeft, Published, Unpublished, Sending, Wanted, Uplink, Pose, Bandwidth,
        Refused, Attributes, Metadata, Muted, Permissions, Recording, Moved, Audience
    }

    /// <summary>An event. Fields that a kind does not set are empty, 0, or -1 for Tile and Quality.</summary>
    public sealed unsafe class SessionEvent
    {
        internal SessionEvent(EventStruct* e)
        {
            Kind = (EventKind)e->Kind;
            Participant = Native.Text(e->Participant);
            Publication = Native.Text(e->Publication);
            Text = Native.Text(e->Text);
            Json = Native.Text(e->Json);
            Tile = e->Tile;
            Quality = e->Quality;
            Estimate = e->Estimate;
            Scale = e->Scale;
            Position = new[] { e->Position[0], e->Position[1], e->Position[2] };
            Orientation = new[] { e->Orientation[0], e->Orientation[1], e->Orientation[2], e->Orientation[3] };
        }

        public EventKind Kind { get; }
        public string Participant { get; }
        public string Publication { get; }
        public string Text { get; }
        public string Json { get; }
        public int Tile { get; }
        public int Quality { get; }
        public long Estimate { get; }
        public double Scale { get; }
        public double[] Position { get; }
        public double[] Orientation { get; }
    }

    /// <summary>A received data message: a text or bytes.</summary>
    public sealed unsafe class DataMessage
    {
        internal DataMessage(MessageStruct* m)
        {
            Participant = Native.Text(m->Participant);
            Topic = Native.Text(m->Topic);
            Lossy = (m->Flags & 1) != 0;
            IsBinary = (m->Flags & 2) != 0;
            Data = new byte[(int)m->Length];
            Marshal.Copy((IntPtr)m->Data, Data, 0, Data.Length);
            Missed = m->Missed;
        }

        /// <summary>The sender; empty for the server's operator.</summary>
        public string Participant { get; }

        public string Topic { get; }
        public bool Lossy { get; }
        public bool IsBinary { get; }
        public byte[] Data { get; }
        public string Text { get { return Encoding.UTF8.GetString(Data); } }

        /// <summary>The number of messages before this one that are lost although they were not lossy.</summary>
        public long Missed { get; }
    }
}
