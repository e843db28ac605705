using System;
using Volsfu.Native;

namespace Volsfu.Tests
{
    static class PointBufferTests
    {
        public static void CountIsAtMostTheCapacity()
        {
            using (var points = new PointBuffer(2))
            {
                points.Count = 2;
                foreach (int wrong in new[] { -1, 3 })
                {
                    try
                    {
                        points.Count = wrong;
                    }
                    catch (ArgumentOutOfRangeException)
                    {
                        continue;
                    }
                    Check.True(false, "a count of " + wrong + " of 2 was taken");
                }
                Check.Equal(2, points.Count, "the count after errors");
                points.Reserve(3);
                Check.Equal(0, points.Count, "the count after the array has grown");
            }
        }
    }
}
