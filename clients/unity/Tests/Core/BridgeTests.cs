using System;
using System.Collections.Generic;
using Volsfu.Bridge;

namespace Volsfu.Tests
{
    static class BridgeTests
    {
        static byte[] Frame(int size, int seed)
        {
            var data = new byte[size];
            new Random(seed).NextBytes(data);
            return FrameHeader.Frame("cwi1", 1795188600000 + seed, data);
        }

        /// <summary>The datagrams of one frame.</summary>
        static List<byte[]> Cut(byte[] frame, uint number, int tile = 0, int quality = 0, bool audio = false)
        {
            var queue = new SendQueue(7, 256, 64);
            if (audio)
            {
                queue.AddAudio(frame);
            }
            else
            {
                queue.AddTile(tile, quality, number, frame);
            }
            var datagrams = new List<byte[]>();
            for (var datagram = new byte[Datagram.Size]; queue.Next(datagram); datagram = new byte[Datagram.Size])
            {
                datagrams.Add(datagram);
            }
            return datagrams;
        }

        static ReceivedFrame Push(FrameAssembler assembler, byte[] datagram, long now = 0)
        {
            DatagramType type;
            Packet packet;
            Check.True(Datagram.TryReadType(datagram, datagram.Length, out type), "the datagram has no type");
            Check.True(Datagram.TryReadPacket(datagram, datagram.Length, type == DatagramType.Audio, out packet), "the datagram has no piece");
            return assembler.Push(ref packet, now);
        }

        static void Same(byte[] want, ReceivedFrame got, string what)
        {
            Check.True(got != null, what + ": not complete");
            Check.Equal(want.Length, got.Length, what + ": length");
            for (int i = 0; i < want.Length; i++)
            {
                Check.True(want[i] == got.Data[i], what + ": byte " + i);
            }
        }

        public static void LayoutIsThatOfTheConnector()
        {
            List<byte[]> datagrams = Cut(Frame(2000, 1), 0x01020304, 5, 2);
            Check.Equal(2, datagrams.Count, "datagrams");
            string head = BitConverter.ToString(datagrams[1], 0, 32);
            Check.Equal("01-00-00-00-07-00-00-00-04-03-02-01-E0-07-00-00-78-04-00-00-68-03-00-00-05-00-00-00-02-00-00-00", head, "second datagram");
            Check.Equal("31-69-77-63-D0-07-00-00", BitConverter.ToString(datagrams[0], 32, 8), "frame header");
            Check.Equal((byte)0, datagrams[1][32 + 0x368], "padding");
            List<byte[]> sound = Cut(Frame(10, 2), 0, 0, 0, true);
            Check.Equal("02-00-00-00-07-00-00-00-00-00-00-00-1A-00-00-00-00-00-00-00-1A-00-00-00", BitConverter.ToString(sound[0], 0, 24), "sound");
            var text = new byte[Datagram.Size];
            Datagram.WriteText(text, " 7,1; ");
            Check.Equal("7,1;", Datagram.ReadText(text, text.Length), "text");
            Check.Refuses(() => Datagram.WriteText(text, new string('1', Datagram.MaxText + 1)), "a text that is too long");
        }

        public static void APortIsForOneProgram()
        {
            // Nobody answers there; a port in use by others is skipped.
            for (int port = 20000; port < 32000; port += 2)
            {
                BridgeClient first;
                try
                {
                    first = new BridgeClient(new BridgeSettings { Port = port });
                }
                catch (BridgeException)
                {
                    continue;
                }
                using (first)
                {
                    try
                    {
                        new BridgeClient(new BridgeSettings { Port = port }).Dispose();
                    }
                    catch (BridgeException)
                    {
                        return;
                    }
                }
                Check.True(false, "a second program was given the port");
            }
            Check.True(false, "no port is free");
        }

        public static void FramesComeWholeInAnyOrder()
        {
            var assembler = new FrameAssembler();
            var random = new Random(2);
            for (uint number = 0; number < 60; number++)
            {
                byte[] frame = Frame(random.Next(0, 40000), (int)number);
                List<byte[]> datagrams = Cut(frame, number, 3, (int)number % 3);
                for (int i = datagrams.Count - 1; i > 0; i--)
                {
                    int other = random.Next(i + 1);
                    byte[] swapped = datagrams[i];
                    datagrams[i] = datagrams[other];
                    datagrams[other] = swapped;
                }
                ReceivedFrame complete = null;
                for (int i = 0; i < datagrams.Count; i++)
                {
                    complete = Push(assembler, datagrams[i]);
                    if (i < datagrams.Count - 1)
                    {
                        Check.True(complete == null, "complete before the last piece");
                        Check.True(Push(assembler, datagrams[i]) == null, "a piece that came twice counts");
                    }
                }
                Same(frame, complete, "frame " + number);
                Check.Equal((int)number % 3, complete.Quality, "quality");
                complete.Release();
            }
            Check.Equal(60L, assembler.Counts.Frames, "frames");
            Check.Equal(0L, assembler.Counts.Contradictions, "contradictions");
        }

        public static void WhatIsNotTakenIsDropped()
        {
            var inbox = new Inbox();
            var assembler = new FrameAssembler();
            ReceivedFrame frame;
            Check.True(!inbox.TryTake(out frame) && frame == null, "a frame out of nothing");
            for (uint number = 0; number < Inbox.MaxFrames + 2; number++)
            {
                inbox.Put(Push(assembler, Cut(Frame(9, (int)number), number)[0]));
            }
            Check.Equal(2L, inbox.Dropped, "frames beyond those that may wait");
            Check.True(inbox.TryTake(out frame) && frame.Number == 2, "the oldest that was kept is not the first");
            frame.Release();
            while (inbox.TryTake(out frame))
            {
                frame.Release();
            }
            // Five frames of 16 MiB: the fifth replaces the oldest.
            for (uint number = 0; number < 5; number++)
            {
                inbox.Put(new ReceivedFrame { Number = number, Data = new byte[0], Length = Inbox.MaxBytes / 4 });
            }
            Check.True(inbox.TryTake(out frame) && frame.Number == 1, "bytes that wait are not bounded");
            Check.Equal(3L, inbox.Dropped, "frames dropped");

            BridgeEvent happened;
            Check.True(!inbox.TryTake(out happened), "an event out of nothing");
            for (int i = 0; i < Inbox.MaxEvents + 1; i++)
            {
                inbox.Put(new BridgeEvent { Kind = BridgeEventKind.Log, Text = "line " + i });
            }
            Check.True(inbox.TryTake(out happened) && happened.Text == "line 1", "the oldest event that was kept is not the first");
        }

        public static void LossSpoilsNothingElse()
        {
            var assembler = new FrameAssembler();
            List<byte[]> first = Cut(Frame(5000, 1), 10), second = Cut(Frame(5000, 2), 11);
            for (int i = 1; i < first.Count; i++)
            {
                Push(assembler, first[i]);
            }
            for (int i = 0; i < second.Count - 1; i++)
            {
                Push(assembler, second[i]);
            }
            Same(Frame(5000, 2), Push(assembler, second[second.Count - 1]), "the frame behind");
            Check.Equal(1L, assembler.Counts.Incomplete, "incomplete frames");
            Check.True(Push(assembler, first[0]) == null, "the frame that was given up");
            Check.Equal(1L, assembler.Counts.Late, "late pieces");
            Push(assembler, Cut(Frame(5000, 3), 12)[0], 1000);
            assembler.Expire(1000 + FrameAssembler.Patience - 1);
            Check.Equal(1L, assembler.Counts.Incomplete, "incomplete frames before patience ends");
            assembler.Expire(1000 + FrameAssembler.Patience);
            Check.Equal(2L, assembler.Counts.Incomplete, "incomplete frames after patience has ended");
        }

        public static void ABridgeThatBeginsAnewIsTaken()
        {
            var assembler = new FrameAssembler();
            Same(Frame(9, 1), Push(assembler, Cut(Frame(9, 1), 5000)[0]), "frame 5000");
            Same(Frame(9, 2), Push(assembler, Cut(Frame(9, 2), 0)[0]), "frame 0 of the next bridge");
            Same(Frame(9, 3), Push(assembler, Cut(Frame(9, 3), uint.MaxValue - 100)[0]), "a number far behind");
            Same(Frame(9, 4), Push(assembler, Cut(Frame(9, 4), 3)[0]), "a number past the end");
            Check.True(Push(assembler, Cut(Frame(9, 5), 2)[0]) == null, "a number that went back a little");
            assembler.Reset();
            Same(Frame(9, 6), Push(assembler, Cut(Frame(9, 6), 1)[0]), "any number after a reset");
        }

        public static void ContradictionsAreCounted()
        {
            var assembler = new FrameAssembler();
            byte[] first = Cut(Frame(5000, 1), 1)[0];
            Push(assembler, first);
            byte[] longer = (byte[])first.Clone();
            longer[12]++;
            Check.True(Push(assembler, longer) == null && assembler.Counts.Contradictions == 1, "another length");
            byte[] overlapping = (byte[])first.Clone();
            overlapping[16] = 1;
            Check.True(Push(assembler, overlapping) == null && assembler.Counts.Contradictions == 2, "a part of another piece");
            byte[] huge = (byte[])first.Clone();
            huge[15] = 0x7f;
            Check.True(Push(assembler, huge) == null && assembler.Counts.TooMuch == 1, "a frame of 2 GB");
        }

        /// <summary>Randomly damaged datagrams only change counters; memory stays bounded.</summary>
        public static void SurvivesSpoiltDatagrams()
        {
            var assembler = new FrameAssembler();
            var random = new Random(3);
            List<byte[]> datagrams = Cut(Frame(100000, 1), 1);
            for (int i = 0; i < 50000; i++)
            {
                byte[] datagram = (byte[])datagrams[random.Next(datagrams.Count)].Clone();
                for (int n = random.Next(4); n > 0; n--)
                {
                    datagram[random.Next(36)] = (byte)random.Next(256);
                }
                int count = random.Next(10) == 0 ? random.Next(datagram.Length) : datagram.Length;
                DatagramType type;
                Packet packet;
                if (Datagram.TryReadType(datagram, count, out type) && type != DatagramType.Ready && type != DatagramType.Control &&
                    Datagram.TryReadPacket(datagram, count, type == DatagramType.Audio, out packet))
                {
                    ReceivedFrame frame = assembler.Push(ref packet, i / 50);
                    Check.True(frame == null || frame.Length <= FrameAssembler.MaxFrame, "a frame of " + packet.Length + " bytes");
                }
                assembler.Expire(i / 50);
            }
            var wild = new byte[1501];
            for (int i = 0; i < 20000; i++)
            {
                random.NextBytes(wild);
                wild[0] = (byte)random.Next(5);
                wild[1] = wild[2] = wild[3] = 0;
                int count = random.Next(wild.Length + 1);
                DatagramType type;
                Packet packet;
                if (Datagram.TryReadType(wild, count, out type) && type == DatagramType.Control)
                {
                    Datagram.ReadText(wild, count);
                }
                Datagram.TryReadPacket(wild, count, false, out packet);
            }
        }

        /// <summary>Memory follows the received bytes and is bounded, for any lengths and offsets in datagrams.</summary>
        public static void ClaimsTakeNoMemory()
        {
            var assembler = new FrameAssembler();
            byte[] first = Cut(Frame(5000, 1), 1)[0];
            long before = GC.GetTotalMemory(true);
            for (uint number = 0; number < 2000; number++)
            {
                byte[] datagram = (byte[])first.Clone();
                Datagram.WriteNumber(datagram, 8, number);
                Datagram.WriteNumber(datagram, 12, FrameAssembler.MaxFrame);
                Datagram.WriteNumber(datagram, 16, FrameAssembler.MaxFrame - Datagram.TileData);
                Check.True(Push(assembler, datagram) == null, "a frame of one piece");
            }
            Check.Equal(0L, assembler.Held, "bytes held of pieces far ahead");
            Check.Equal(2000L, assembler.Counts.Contradictions, "contradictions");
            for (uint tile = 0; tile < FrameAssembler.MaxStreams; tile++)
            {
                byte[] datagram = (byte[])first.Clone();
                Datagram.WriteNumber(datagram, 12, FrameAssembler.MaxFrame);
                Datagram.WriteNumber(datagram, 24, tile);
                Push(assembler, datagram);
                Check.True(assembler.Held <= FrameAssembler.MaxHeld, "held are " + assembler.Held + " bytes");
            }
            // Released memory in pools counts, too.
            long grown = GC.GetTotalMemory(true) - before;
            Check.True(grown < 2L * FrameAssembler.MaxHeld, "memory has grown by " + grown + " bytes");
        }

        /// <summary>
        /// Frames with randomly damaged headers and data are read or rejected by all readers, and need no memory beyond
        /// their own size.
        /// </summary>
        public static void SurvivesSpoiltFrames()
        {
            var random = new Random(11);
            var large = new byte[] { 0, 1, 0x7f, 0x80, 0xff };
            byte[] points = RawPoints.Frame(new float[300], new byte[300], 100, 1795188600123);
            long before = GC.GetTotalMemory(true);
            int read = 0, refused = 0;
            for (int i = 0; i < 20000; i++)
            {
                byte[] frame = (byte[])points.Clone();
                for (int n = random.Next(5); n > 0; n--)
                {
                    int at = random.Next(random.Next(2) == 0 ? 48 : frame.Length);
                    frame[at] = random.Next(2) == 0 ? large[random.Next(large.Length)] : (byte)random.Next(256);
                }
                int length = random.Next(4) == 0 ? random.Next(frame.Length + 1) : frame.Length;
                var positions = new float[0];
                var colors = new byte[0];
                int count;
                FrameHeader header;
                bool headed = FrameHeader.TryRead(frame, length, out header);
                Check.True(!headed || (header.Length >= 0 && header.Length <= length - FrameHeader.Size), "a header announces " + header.Length + " of " + length + " bytes");
                bool taken = RawPoints.TryRead(frame, length, ref positions, ref colors, out count);
                read += taken ? 1 : 0;
                refused += taken ? 0 : 1;
                Check.True(count <= 100 && positions.Length <= 300 && colors.Length <= 300, count + " points in memory for " + positions.Length / 3);
            }
            Check.True(read > 0 && refused > 0, read + " frames were read and " + refused + " refused, want some of each");
            long grown = GC.GetTotalMemory(true) - before;
            Check.True(grown < 8 << 20, "memory has grown by " + grown + " bytes");
        }

        public static void MalformedDatagramsAreRefused()
        {
            byte[] whole = Cut(Frame(5000, 1), 1)[0];
            DatagramType type;
            Packet packet;
            Check.True(!Datagram.TryReadType(whole, 3, out type), "three bytes");
            Check.True(!Datagram.TryReadType(new byte[1600], 1501, out type), "1501 bytes");
            Check.True(!Datagram.TryReadType(new byte[] { 4, 0, 0, 0 }, 4, out type), "an unknown type");
            Check.True(!Datagram.TryReadPacket(whole, 31, false, out packet), "half a header");
            Check.True(!Datagram.TryReadPacket(whole, 600, false, out packet), "less data than announced");
            byte[] beyond = (byte[])whole.Clone();
            beyond[17] = 0x20;
            Check.True(!Datagram.TryReadPacket(beyond, beyond.Length, false, out packet), "a piece beyond its frame");
            FrameHeader header;
            Check.True(!FrameHeader.TryRead(new byte[15], 15, out header), "15 bytes for a header");
            byte[] frame = Frame(3, 1);
            frame[4]++;
            Check.True(!FrameHeader.TryRead(frame, frame.Length, out header), "a header that announces more");
            Check.Refuses(() => FrameHeader.Frame("long name", 0, new byte[0]), "a codec of nine characters");
        }
    }
}
