using System;
using System.Collections.Generic;
using Volsfu.Bridge;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    static class SceneTests
    {
        static string Words(byte[] datagram, int count)
        {
            var words = new List<string>();
            for (int i = 0; i < count; i++)
            {
                words.Add(BitConverter.ToString(datagram, 4 * i, 4).Replace("-", ""));
            }
            return string.Join(" ", words);
        }

        public static void ViewsAreLaidOutAsTheBridgeReads()
        {
            var book = new SceneBook(1);
            var datagram = new byte[Datagram.Size];
            Check.True(book.IsEmpty && !book.Next(datagram), "nothing was said");
            book.Look(new Viewpoint { Position = new[] { 9.0, 0, 0 } });
            book.Look(new Viewpoint { Position = new[] { 1.0, 1.5, -3 }, Orientation = new[] { 0, 0, 0, 1.0 }, FieldOfView = 60, Aspect = 1.5 });
            Check.True(book.Next(datagram), "the newest view");
            Check.Equal("10000000 0000803F 0000C03F 000040C0 00000000 00000000 00000000 0000803F 00007042 0000C03F 00000000", Words(datagram, 11), "view");
            Check.True(book.IsEmpty && !book.Next(datagram), "it is sent once");
            book.Remind();
            Check.True(book.Next(datagram), "and again to another bridge");
            Check.Refuses(() => book.Look(new Viewpoint { FieldOfView = 180 }), "a view of half of everything");
            Check.Refuses(() => book.Look(new Viewpoint { Position = new[] { double.NaN, 0, 0 } }), "a view from nowhere");
            Check.True(book.IsEmpty, "what was refused changes nothing");
        }

        public static void ObjectsAreLaidOutAsTheBridgeReads()
        {
            var book = new SceneBook(1);
            var datagram = new byte[Datagram.Size];
            var pose = new ObjectPose { Position = new[] { 5.0, 0, 0 }, Scale = 2 };
            book.Place(pose, new Tile { Min = new[] { -1.0, -2, -3 }, Max = new[] { 1.0, 2, 3 } });
            Check.True(book.Next(datagram), "an object");
            Check.Equal("11000000 0000A040 00000000 00000000 00000000 00000000 00000000 0000803F 00000040 00000000 01000000 " +
                "000080BF 000000C0 000040C0 0000803F 00000040 00004040 00000000", Words(datagram, 18), "object");
            book.Place(pose);
            Check.True(book.Next(datagram), "an object without boxes");
            Check.Equal("00000000 00000000 00000000", Words(datagram, 12).Substring(9 * 9), "no boxes");
            Check.Refuses(() => book.Place(pose, new Tile(), new Tile()), "two boxes of one tile");
            Check.Refuses(() => book.Place(new ObjectPose { Scale = -1 }), "a scale below nothing");
            Check.Refuses(() => book.Place(pose, new Tile { Min = new double[2] }), "a box in a plane");
            Check.True(book.IsEmpty, "what was refused changes nothing");
        }

        public static void ManyBoxesComeInSeveralDatagrams()
        {
            var queue = new SendQueue(1, 120, 1);
            var datagram = new byte[Datagram.Size];
            var boxes = new Tile[120];
            for (int i = 0; i < boxes.Length; i++)
            {
                boxes[i] = new Tile { Min = new[] { i, 0, 0.0 }, Max = new[] { i + 1, 1, 1.0 } };
            }
            queue.Scene.Place(new ObjectPose(), boxes);
            queue.Scene.Look(new Viewpoint());
            var seen = new List<string>();
            while (queue.Next(datagram))
            {
                seen.Add(datagram[0] == 16 ? "view" : datagram[36] + "+" + datagram[40]);
            }
            Check.Equal("view 0+52 52+52 104+16", string.Join(" ", seen), "datagrams");
            queue.Scene.Remind();
            Check.True(!queue.IsEmpty, "all of it waits again");
            queue.Clear();
            Check.True(queue.IsEmpty && queue.Dropped == 0, "nobody is there, and no frame was dropped");
        }
    }
}
