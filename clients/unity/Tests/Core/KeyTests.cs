using System.Collections.Generic;
using Volsfu.Bridge;

namespace Volsfu.Tests
{
    static class KeyTests
    {
        static string Orders(KeyBook keys)
        {
            var orders = new List<string>();
            for (string order = keys.Next(); order != null; order = keys.Next())
            {
                orders.Add(order);
            }
            return string.Join("|", orders.ToArray());
        }

        static byte[] Secret(byte value, int size = 16)
        {
            var secret = new byte[size];
            for (int i = 0; i < size; i++)
            {
                secret[i] = value;
            }
            return secret;
        }

        public static void ARotationIsThreeOrders()
        {
            var keys = new KeyBook();
            keys.Set(1, Secret(0xab), null);
            keys.Set(1, Secret(1), "Zo\u00eb B");
            keys.Use(1);
            keys.Forget(0);
            Check.Equal("key 1:abababababababababababababababab|key 1:01010101010101010101010101010101 Zo\u00eb B|use 1|forget 0", Orders(keys), "orders");
            Check.True(keys.PassphraseForgotten, "the passphrase is not forgotten");
            Check.Equal("", Orders(keys), "orders that were given");
        }

        public static void ARestartedBridgeIsGivenThePresentKeys()
        {
            var keys = new KeyBook();
            keys.Set(1, Secret(1), null);
            keys.Set(2, Secret(2), null);
            keys.Set(2, Secret(3), null);
            keys.Use(2);
            keys.Forget(1);
            keys.Remind();
            Check.Equal("key 2:03030303030303030303030303030303|use 2", Orders(keys), "orders");
            keys.Forget(2);
            keys.Remind();
            Check.Equal("", Orders(keys), "orders after the last epoch was forgotten");
        }

        public static void KeysOutOfBoundsAreRefused()
        {
            var keys = new KeyBook();
            Check.Refuses(() => keys.Set(0, Secret(1, 15), null), "a secret of 15 bytes");
            Check.Refuses(() => keys.Set(0, Secret(1, 65), null), "a secret of 65 bytes");
            Check.Refuses(() => keys.Set(0, null, null), "no secret");
            Check.Refuses(() => keys.Set(0, Secret(1), "ada\nforget 0"), "an identity with another order");
            Check.Refuses(() => keys.Set(0, Secret(1), "ada "), "an identity that would be cut");
            Check.Refuses(() => keys.Use(-1), "epoch -1");
            Check.Refuses(() => keys.Forget(65536), "epoch 65536");
            Check.Equal("", Orders(keys), "orders of refused keys");
            for (int epoch = 0; epoch < KeyBook.MaxSecrets; epoch++)
            {
                keys.Set(epoch, Secret(1), null);
            }
            Check.Refuses(() => keys.Set(KeyBook.MaxSecrets, Secret(1), null), "more secrets than are kept");
            Check.Refuses(() => new BridgeSettings { Passphrase = "correct horse" }.Check(), "a passphrase without a bridge of its own");
        }

        public static void SecretsAreNotArguments()
        {
            var settings = new BridgeSettings { Executable = "volbridge", Passphrase = "correct horse" };
            List<string> arguments = settings.Arguments();
            Check.True(arguments.Contains("--transcode") && arguments.Contains("--e2ee-stdin"), "encryption is not an argument");
            Check.True(!BridgeSettings.CommandLine(arguments).Contains("horse"), "the passphrase is an argument");
            Check.True(!new BridgeSettings().Arguments().Contains("--e2ee-stdin"), "encryption without a key");
        }
    }
}
