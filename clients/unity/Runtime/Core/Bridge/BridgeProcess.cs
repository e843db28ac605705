using System;
using System.ComponentModel;
using System.Diagnostics;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The bridge's executable: it is started, monitored, and restarted when it ends. It belongs to the thread that
    /// steps it; events are passed to the given function, also from threads of the system. Times are milliseconds.
    /// </summary>
    sealed class BridgeProcess
    {
        /// <summary>A bridge without any datagram for this time after its start is ended and restarted.</summary>
        const long readyTimeout = 15000;
        /// <summary>The time for a bridge to leave the room when it is ended.</summary>
        const int leaveTimeout = 1000;
        /// <summary>The bridge ends with its standard input, that is, with this program in all cases.</summary>
        const string untilInputCloses = "--until-stdin-closes";
        const int maxLine = 4096;

        readonly BridgeSettings settings;
        readonly Action<BridgeEventKind, string> report;
        readonly KeyBook keys;
        readonly object gate;
        readonly RestartPolicy policy = new RestartPolicy();
        Process process;
        long startAt, startedAt;

        /// <summary>The keys are protected by the gate.</summary>
        internal BridgeProcess(BridgeSettings settings, KeyBook keys, object gate, Action<BridgeEventKind, string> report)
        {
            this.settings = settings;
            this.keys = keys;
            this.gate = gate;
            this.report = report;
        }

        /// <summary>
        /// Starts or monitors the bridge. Returns true when a bridge has ended, so that its data is no longer expected.
        /// </summary>
        internal bool Step(long now, bool ready)
        {
            if (process == null)
            {
                if (now >= startAt)
                {
                    Start(now);
                }
                return false;
            }
            if (!process.HasExited)
            {
                PassKeys();
                if (!ready && now - startedAt > readyTimeout)
                {
                    report(BridgeEventKind.Log, "the bridge sent no datagram within " + readyTimeout / 1000 + " s of its start and is ended");
                    Kill();
                }
                return false;
            }
            int code = process.ExitCode;
            process.Dispose();
            process = null;
            long wait = policy.Ended(now);
            startAt = now + wait;
            report(BridgeEventKind.Ended, "exit code " + code + ", started again in " + wait + " ms");
            return true;
        }

        void Start(long now)
        {
            policy.Started(now);
            var arguments = settings.Arguments();
            arguments.Add(untilInputCloses);
            var starting = new Process
            {
                StartInfo = new ProcessStartInfo
                {
                    FileName = settings.Executable,
                    Arguments = BridgeSettings.CommandLine(arguments),
                    UseShellExecute = false,
                    CreateNoWindow = true,
                    RedirectStandardInput = true,
                    RedirectStandardError = true,
                    RedirectStandardOutput = true
                }
            };
            if (!string.IsNullOrEmpty(settings.Token))
            {
                starting.StartInfo.EnvironmentVariables["VOLPEER_TOKEN"] = settings.Token;
            }
            if (!string.IsNullOrEmpty(settings.Secret))
            {
                starting.StartInfo.EnvironmentVariables["VOLPEER_BRIDGE_SECRET"] = settings.Secret;
            }
            lock (gate)
            {
                if (!string.IsNullOrEmpty(settings.Passphrase) && !keys.PassphraseForgotten)
                {
                    starting.StartInfo.EnvironmentVariables["VOLPEER_PASSPHRASE"] = settings.Passphrase;
                }
                keys.Remind();
            }
            starting.ErrorDataReceived += (sender, line) => Log(line.Data);
            starting.OutputDataReceived += (sender, line) => Log(line.Data);
            try
            {
                starting.Start();
                starting.BeginErrorReadLine();
                starting.BeginOutputReadLine();
            }
            catch (Exception e) when (e is Win32Exception || e is InvalidOperationException || e is System.IO.IOException)
            {
                starting.Dispose();
                startAt = now + policy.Ended(now);
                report(BridgeEventKind.NotStarted, settings.Executable + ": " + e.Message);
                return;
            }
            process = starting;
            startedAt = now;
            report(BridgeEventKind.Started, starting.Id.ToString());
        }

        /// <summary>Gives the bridge the orders about keys that it has not been given, on its standard input.</summary>
        void PassKeys()
        {
            for (string order = NextKeyOrder(); order != null; order = NextKeyOrder())
            {
                try
                {
                    // The standard input has the system's encoding, and identities are UTF-8.
                    byte[] line = Encoding.UTF8.GetBytes(order + "\n");
                    process.StandardInput.BaseStream.Write(line, 0, line.Length);
                    process.StandardInput.BaseStream.Flush();
                }
                catch (System.IO.IOException)
                {
                    // It has ended by itself meanwhile, and the next one is given everything again.
                }
            }
        }

        string NextKeyOrder()
        {
            lock (gate)
            {
                return keys.Next();
            }
        }

        /// <summary>Ends the bridge permanently.</summary>
        internal void Stop()
        {
            if (process != null)
            {
                Leave();
                if (!process.WaitForExit(leaveTimeout))
                {
                    Kill();
                    process.WaitForExit(leaveTimeout);
                }
                process.Dispose();
                process = null;
            }
        }

        void Leave()
        {
            try
            {
                process.StandardInput.Close();
            }
            catch (System.IO.IOException)
            {
                // It has ended by itself meanwhile.
            }
        }

        void Kill()
        {
            try
            {
                process.Kill();
            }
            catch (Exception e) when (e is Win32Exception || e is InvalidOperationException)
            {
                // It has ended by itself meanwhile.
            }
        }

        void Log(string line)
        {
            if (line != null)
            {
                report(BridgeEventKind.Log, line.Length > maxLine ? line.Substring(0, maxLine) : line);
            }
        }
    }
}
