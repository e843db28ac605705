using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Volsfu.Bridge
{
    /// <summary>
    /// The secrets of end-to-end encryption, as orders for the bridge. A restarted bridge is given all of them again.
    /// </summary>
    sealed class KeyBook
    {
        /// <summary>The minimum size of a secret in bytes, and the maximum.</summary>
        internal const int MinSecret = 16, MaxSecret = 64;
        /// <summary>The highest epoch.</summary>
        internal const int MaxEpoch = 65535;
        /// <summary>The most secrets that are kept.</summary>
        internal const int MaxSecrets = 4096;
        /// <summary>The epoch of the secret of a passphrase.</summary>
        internal const int PassphraseEpoch = 0;

        readonly Dictionary<string, string> secrets = new Dictionary<string, string>();
        readonly List<string> order = new List<string>();
        readonly Queue<string> waiting = new Queue<string>();
        int use = -1;

        /// <summary>Whether the passphrase's epoch was forgotten: a restarted bridge must not have it again.</summary>
        internal bool PassphraseForgotten { get; private set; }

        /// <summary>Sets the secret of an epoch, of one participant or of all.</summary>
        internal void Set(int epoch, byte[] secret, string identity)
        {
            CheckEpoch(epoch);
            if (secret == null || secret.Length < MinSecret || secret.Length > MaxSecret)
            {
                throw new ProtocolException("bridge: a secret for encryption of " + (secret == null ? 0 : secret.Length) + " bytes, expected " + MinSecret + " to " + MaxSecret);
            }
            identity = identity ?? "";
            if (identity.IndexOfAny(new[] { '\r', '\n', '\0' }) >= 0 || identity != identity.Trim() || Encoding.UTF8.GetByteCount(identity) > 512)
            {
                throw new ProtocolException("bridge: an identity with a line break, with a space at its end, or of more than 512 bytes");
            }
            string owner = Number(epoch) + " " + identity;
            if (!secrets.ContainsKey(owner))
            {
                if (order.Count == MaxSecrets)
                {
                    throw new ProtocolException("bridge: " + MaxSecrets + " secrets are set; forget older epochs");
                }
                order.Add(owner);
            }
            string line = "key " + Number(epoch) + ":" + BitConverter.ToString(secret).Replace("-", "").ToLowerInvariant() + (identity == "" ? "" : " " + identity);
            secrets[owner] = line;
            waiting.Enqueue(line);
        }

        /// <summary>Encrypts with the secrets of an epoch.</summary>
        internal void Use(int epoch)
        {
            CheckEpoch(epoch);
            use = epoch;
            waiting.Enqueue("use " + Number(epoch));
        }

        /// <summary>Removes the secrets of an epoch.</summary>
        internal void Forget(int epoch)
        {
            CheckEpoch(epoch);
            string start = Number(epoch) + " ";
            order.RemoveAll(owner => owner.StartsWith(start, StringComparison.Ordinal) && secrets.Remove(owner));
            PassphraseForgotten |= epoch == PassphraseEpoch;
            use = use == epoch ? -1 : use;
            waiting.Enqueue("forget " + Number(epoch));
        }

        /// <summary>Returns the oldest order that the bridge was not given yet; null if there is none.</summary>
        internal string Next()
        {
            return waiting.Count == 0 ? null : waiting.Dequeue();
        }

        /// <summary>A bridge has started, and is given everything again.</summary>
        internal void Remind()
        {
            waiting.Clear();
            foreach (string owner in order)
            {
                waiting.Enqueue(secrets[owner]);
            }
            if (use >= 0)
            {
                waiting.Enqueue("use " + Number(use));
            }
        }

        static void CheckEpoch(int epoch)
        {
            if (epoch < 0 || epoch > MaxEpoch)
            {
                throw new ProtocolException("bridge: the epoch " + epoch + ", expected 0 to " + MaxEpoch);
            }
        }

        static string Number(int number)
        {
            return number.ToString(CultureInfo.InvariantCulture);
        }
    }
}
