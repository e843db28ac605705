using System;
using System.Runtime.InteropServices;

namespace Volsfu.Native
{
    /// <summary>The functions of clients/c/volsfu.h. Their arguments have the same layout in C#, so that no call allocates.</summary>
    static unsafe class Library
    {
#if UNITY_IOS && !UNITY_EDITOR
        const string Name = "__Internal";
#else
        const string Name = "volsfu";
#endif
        /// <summary>The VOLSFU_API_VERSION of these declarations.</summary>
        internal const uint ApiVersion = 5;

        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern uint volsfu_api_version();
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern byte* volsfu_last_message();
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_connect(ConfigStruct* config, ulong* session);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_close(ulong session);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_limits(ulong session, long most, long least);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_server_time(ulong session, long local, long* server);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_get_room(ulong session, byte* buffer, UIntPtr capacity, UIntPtr* length);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_get_statistics(ulong session, byte* buffer, UIntPtr capacity, UIntPtr* length);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_attributes(ulong session, byte* participant, byte* json);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_key(ulong session, uint epoch, byte* identity, byte* secret, UIntPtr length);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_use_epoch(ulong session, uint epoch);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_forget_epoch(ulong session, uint epoch);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_publish(ulong session, PublicationStruct* publication, ulong* publisher);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_unpublish(ulong publisher);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_write_frame(ulong publisher, int tile, int quality, OutgoingFrameStruct* frame);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_wanted(ulong publisher, int tile, int quality);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_pose(ulong publisher, PoseStruct* pose);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_next_frame(ulong session, int timeout, FrameStruct* frame);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_release_frame(FrameStruct* frame);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_quality(ulong session, ChoiceStruct* choices, UIntPtr count);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_set_viewpoint(ulong session, ViewpointStruct* viewpoint);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_publish_sound(ulong session, SoundStruct* sound, ulong* publisher);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_write_sound(ulong publisher, float* samples, UIntPtr count, long capture);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_listen(ulong session, byte* participant, byte* publication, ulong* listener);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_read_sound(ulong listener, float* samples, UIntPtr count, UIntPtr* heard);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_end_listening(ulong listener);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_send_message(ulong session, OutgoingMessageStruct* message);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_next_message(ulong session, int timeout, MessageStruct* message);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_release_message(MessageStruct* message);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_next_event(ulong session, int timeout, EventStruct* e);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_release_event(EventStruct* e);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_get_codecs(byte* buffer, UIntPtr capacity, UIntPtr* length);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_encode(EncodingStruct* encoding, PointsStruct* points, byte* buffer, UIntPtr capacity, UIntPtr* length);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_decode(byte* codec, byte* data, UIntPtr length, PointsStruct* points);
        [DllImport(Name, CallingConvention = CallingConvention.Cdecl)] internal static extern int volsfu_decode_raster(byte* codec, byte* data, UIntPtr length, RasterStruct* raster);
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct ConfigStruct
    {
        internal uint Size, Flags;
        internal byte* Url, Room, Identity, Token;
        internal long MaxBitrate, StartBitrate, MaxUplink, MinUplink;
        internal uint DeadlineMs, FrameBytes, QueueFrames, RequestMs;
        internal ulong QueueBytes;
        internal byte* Interfaces;
        internal uint Redundancy;
        internal byte* Passphrase, CaFile;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct BoxStruct
    {
        internal fixed float Min[3];
        internal fixed float Max[3];
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct TileStruct
    {
        internal byte* Label;
        internal BoxStruct Box;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct QualityStruct
    {
        internal byte* Name;
        internal long Bitrate;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct PublicationStruct
    {
        internal uint Size, Flags, Mode;
        internal byte* Name, Format;
        internal double FrameRate;
        internal TileStruct* Tiles;
        internal QualityStruct* Qualities;
        internal uint TileCount, QualityCount;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct OutgoingFrameStruct
    {
        internal uint Size, Number, Codec;
        internal long CaptureUs;
        internal byte* Data;
        internal UIntPtr Length;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct PoseStruct
    {
        internal uint Size, BoxCount;
        internal fixed double Position[3];
        internal fixed double Orientation[4];
        internal double Scale, Priority;
        internal BoxStruct* Boxes;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct FrameStruct
    {
        internal uint Size, Codec;
        internal ulong Handle;
        internal byte* Participant, Publication;
        internal int Tile, Quality;
        internal long Number, CaptureUs, FirstUs, CompleteUs;
        internal byte* Data;
        internal UIntPtr Length;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct ChoiceStruct
    {
        internal byte* Participant, Publication;
        internal int Tile, Quality;
        internal ulong Qualities;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct ViewpointStruct
    {
        internal uint Size;
        internal long AtUs;
        internal fixed double Position[3];
        internal fixed double Orientation[4];
        internal double Fov, Aspect;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct SoundStruct
    {
        internal uint Size, Bitrate;
        internal byte* Name;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct OutgoingMessageStruct
    {
        internal uint Size, Flags;
        internal byte* Topic;
        internal byte** To;
        internal UIntPtr ToCount;
        internal byte* Data;
        internal UIntPtr Length;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct MessageStruct
    {
        internal uint Size, Flags;
        internal ulong Handle;
        internal byte* Participant, Topic, Data;
        internal UIntPtr Length;
        internal long Missed;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct EventStruct
    {
        internal uint Size, Kind;
        internal ulong Handle;
        internal byte* Participant, Publication, Text, Json;
        internal int Tile, Quality, Description;
        internal long DelayUs, Estimate, Allocated, Wanted;
        internal fixed double Position[3];
        internal fixed double Orientation[4];
        internal double Scale, Priority;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct PointsStruct
    {
        internal uint Size, ColorBytes;
        internal float* Positions;
        internal byte* Colors;
        internal UIntPtr Capacity, Count;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct EncodingStruct
    {
        internal uint Size, Codec, PositionBits, Speed, ColorQuality;
        internal BoxStruct Box;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct RasterStruct
    {
        internal uint Size, ColorBytes;
        internal float* Depths;
        internal byte* Colors;
        internal float* Rays;
        internal UIntPtr Capacity, Count;
        internal uint Camera, Reduction, Left, Top, Width, Height, CameraWidth, CameraHeight, Distortion;
        internal fixed double Focal[2];
        internal fixed double Centre[2];
        internal fixed double Coefficients[8];
        internal fixed double Position[3];
        internal fixed double Rotation[9];
    }
}
