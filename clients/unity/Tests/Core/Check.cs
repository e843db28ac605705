using System;
using System.Reflection;

namespace Volsfu.Tests
{
    /// <summary>A failed test.</summary>
    sealed class FailedException : Exception
    {
        internal FailedException(string message) : base(message) { }
    }

    /// <summary>The checks of tests, and the runner of tests without external requirements.</summary>
    static class Check
    {
        internal static void Equal<T>(T want, T got, string what)
        {
            if (!Equals(want, got))
            {
                throw new FailedException(what + ": got " + got + ", want " + want);
            }
        }

        internal static void True(bool condition, string what)
        {
            if (!condition)
            {
                throw new FailedException(what);
            }
        }

        /// <summary>Expects a ProtocolException, and nothing else.</summary>
        internal static void Refuses(Action action, string what)
        {
            try
            {
                action();
            }
            catch (ProtocolException)
            {
                return;
            }
            throw new FailedException(what + ": was taken, want ProtocolException");
        }

        /// <summary>
        /// Runs every public static method of the classes with names that end in Tests. Returns the number of failures;
        /// -1 if there are no tests.
        /// </summary>
        internal static int RunAll()
        {
            int run = 0, failed = 0;
            foreach (Type type in Assembly.GetExecutingAssembly().GetTypes())
            {
                if (!type.Name.EndsWith("Tests", StringComparison.Ordinal))
                {
                    continue;
                }
                foreach (MethodInfo method in type.GetMethods(BindingFlags.Static | BindingFlags.Public))
                {
                    run++;
                    try
                    {
                        method.Invoke(null, null);
                        Console.WriteLine("ok " + type.Name + "." + method.Name);
                    }
                    catch (TargetInvocationException e)
                    {
                        failed++;
                        Console.WriteLine("FAIL " + type.Name + "." + method.Name + ": " + e.InnerException);
                    }
                }
            }
            return run == 0 ? -1 : failed;
        }
    }
}
