using System;
using System.IO;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Volsfu.Signalling
{
    /// <summary>
    /// Reads JSON into Newtonsoft's trees. Nothing is converted to objects by reflection, for which IL2CPP would have to
    /// keep code. The methods for members of an object check the type and range, and throw ProtocolException for a
    /// mismatch, so that readers of messages need no further checks.
    /// </summary>
    static class JsonReading
    {
        /// <summary>The maximum nesting of lists and objects. Signalling v1 needs seven levels.</summary>
        internal const int MaxDepth = 32;

        /// <summary>Parses a text with a single value. For any text, it throws only ProtocolException.</summary>
        internal static JToken Parse(string text)
        {
            try
            {
                // Texts that look like dates remain texts.
                using (var reader = new JsonTextReader(new StringReader(text)) { MaxDepth = MaxDepth, DateParseHandling = DateParseHandling.None })
                {
                    JToken value = JToken.ReadFrom(reader);
                    if (reader.Read())
                    {
                        throw new ProtocolException("JSON: expected the end after the value");
                    }
                    return value;
                }
            }
            catch (JsonException e)
            {
                throw new ProtocolException("JSON: " + e.Message);
            }
            catch (Exception e) when (e is FormatException || e is OverflowException || e is ArgumentException)
            {
                // Some versions of the library leave wrong numbers to the system's parsers.
                throw new ProtocolException("JSON: " + e.Message);
            }
        }

        /// <summary>The value itself as a text.</summary>
        internal static string AsText(this JToken json, string what)
        {
            Expect(json.Type == JTokenType.String, what, "a text");
            return (string)json;
        }

        /// <summary>The value itself as a finite number.</summary>
        internal static double AsNumber(this JToken json, string what)
        {
            object value = Scalar(json);
            double number = value is long ? (long)value : value is double ? (double)value : double.NaN;
            Expect(!double.IsNaN(number) && !double.IsInfinity(number), what, "a number");
            return number;
        }

        /// <summary>A member of an object; null if it is absent or JSON's null.</summary>
        internal static JToken Find(this JToken json, string name)
        {
            var members = json as JObject;
            JToken found = members == null ? null : members[name];
            return found == null || found.Type == JTokenType.Null ? null : found;
        }

        /// <summary>A member that must be an object.</summary>
        internal static JObject Object(this JToken json, string name)
        {
            var found = Find(json, name) as JObject;
            Expect(found != null, name, "an object");
            return found;
        }

        /// <summary>A required text member with a maximum number of characters.</summary>
        internal static string Text(this JToken json, string name, int most)
        {
            var found = Scalar(Find(json, name)) as string;
            Expect(found != null && found.Length <= most, name, "a text of at most " + most + " characters");
            return found;
        }

        /// <summary>A text member; "" if it is absent.</summary>
        internal static string OptionalText(this JToken json, string name, int most)
        {
            return Find(json, name) == null ? "" : Text(json, name, most);
        }

        /// <summary>A required whole number between two inclusive bounds.</summary>
        internal static long Integer(this JToken json, string name, long least, long most)
        {
            object value = Scalar(Find(json, name));
            Expect(value is long && (long)value >= least && (long)value <= most, name, "a whole number from " + least + " to " + most);
            return (long)value;
        }

        /// <summary>A whole number; a default if it is absent.</summary>
        internal static long OptionalInteger(this JToken json, string name, long least, long most, long absent)
        {
            return Find(json, name) == null ? absent : Integer(json, name, least, most);
        }

        /// <summary>A finite number; a default if it is absent.</summary>
        internal static double OptionalNumber(this JToken json, string name, double absent)
        {
            JToken found = Find(json, name);
            return found == null ? absent : AsNumber(found, name);
        }

        /// <summary>Whether a member is true; false if it is absent.</summary>
        internal static bool Flag(this JToken json, string name)
        {
            JToken found = Find(json, name);
            Expect(found == null || found.Type == JTokenType.Boolean, name, "true or false");
            return found != null && (bool)found;
        }

        /// <summary>The elements of a list with a maximum length; none if the list is absent or null.</summary>
        internal static JArray List(this JToken json, string name, int most)
        {
            JToken found = Find(json, name);
            var list = found == null ? new JArray() : found as JArray;
            Expect(list != null && list.Count <= most, name, "a list of at most " + most);
            return list;
        }

        /// <summary>A list of an exact number of finite numbers.</summary>
        internal static double[] Numbers(this JToken json, string name, int count)
        {
            JArray list = List(json, name, count);
            Expect(list.Count == count, name, count + " numbers");
            var numbers = new double[count];
            for (int i = 0; i < count; i++)
            {
                numbers[i] = AsNumber(list[i], name);
            }
            return numbers;
        }

        /// <summary>The value of a text, number or flag: a string, long, double or bool. Numbers beyond a long have another type.</summary>
        static object Scalar(JToken json)
        {
            var value = json as JValue;
            return value == null || value.Type == JTokenType.Comment ? null : value.Value;
        }

        static void Expect(bool condition, string what, string expected)
        {
            if (!condition)
            {
                throw new ProtocolException(what + ": expected " + expected);
            }
        }
    }
}
