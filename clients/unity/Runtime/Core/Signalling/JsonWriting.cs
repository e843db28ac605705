using System.Collections.Generic;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    /// <summary>Adds members to the objects of a client's messages. Each method returns the object.</summary>
    static class JsonWriting
    {
        /// <summary>A text, whole number or flag; also an object or a list.</summary>
        internal static JObject Member(this JObject json, string name, JToken value)
        {
            json.Add(name, value);
            return json;
        }

        /// <summary>A number, which must be finite: JSON has no others.</summary>
        internal static JObject Number(this JObject json, string name, double value)
        {
            return json.Member(name, Finite(name, value));
        }

        /// <summary>A text member, omitted if it is null or empty.</summary>
        internal static JObject Optional(this JObject json, string name, string value)
        {
            return string.IsNullOrEmpty(value) ? json : json.Member(name, value);
        }

        /// <summary>A whole number, omitted if it is 0.</summary>
        internal static JObject Optional(this JObject json, string name, long value)
        {
            return value == 0 ? json : json.Member(name, value);
        }

        /// <summary>A finite number, omitted if it is 0.</summary>
        internal static JObject Optional(this JObject json, string name, double value)
        {
            return value == 0 ? json : json.Number(name, value);
        }

        /// <summary>Finite numbers in a list.</summary>
        internal static JObject Numbers(this JObject json, string name, IEnumerable<double> values)
        {
            var list = new JArray();
            foreach (double value in values)
            {
                list.Add(Finite(name, value));
            }
            return json.Member(name, list);
        }

        static JToken Finite(string name, double value)
        {
            if (double.IsNaN(value) || double.IsInfinity(value))
            {
                throw new ProtocolException(name + ": " + value + ", expected a finite number");
            }
            return value;
        }
    }
}
