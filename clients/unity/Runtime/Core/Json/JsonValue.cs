using System.Collections.Generic;

namespace Volsfu.Json
{
    /// <summary>The types of JSON values.</summary>
    public enum JsonKind { Null, Boolean, Number, Text, List, Object }

    /// <summary>
    /// One value of a JSON text (RFC 8259) parsed by JsonReader. It is immutable. The methods for members of an object
    /// check the type and range, and throw ProtocolException for a mismatch, so that readers of messages need no
    /// further checks.
    /// </summary>
    public sealed class JsonValue
    {
        static readonly JsonValue[] nothing = new JsonValue[0];
        static readonly Dictionary<string, JsonValue> noMembers = new Dictionary<string, JsonValue>();

        readonly string text;
        readonly double number;
        readonly bool integral;
        readonly long integer;
        readonly IReadOnlyList<JsonValue> items;
        readonly Dictionary<string, JsonValue> members;

        JsonValue(JsonKind kind, string text, double number, bool integral, long integer, IReadOnlyList<JsonValue> items, Dictionary<string, JsonValue> members)
        {
            Kind = kind;
            this.text = text;
            this.number = number;
            this.integral = integral;
            this.integer = integer;
            this.items = items;
            this.members = members;
        }

        /// <summary>The type of the value.</summary>
        public JsonKind Kind { get; }

        internal static readonly JsonValue Null = Simple(JsonKind.Null, 0);
        internal static readonly JsonValue True = Simple(JsonKind.Boolean, 1);
        internal static readonly JsonValue False = Simple(JsonKind.Boolean, 0);

        static JsonValue Simple(JsonKind kind, double number)
        {
            return new JsonValue(kind, "", number, false, 0, nothing, noMembers);
        }

        internal static JsonValue OfText(string text)
        {
            return new JsonValue(JsonKind.Text, text, 0, false, 0, nothing, noMembers);
        }

        internal static JsonValue OfNumber(double number, bool integral, long integer)
        {
            return new JsonValue(JsonKind.Number, "", number, integral, integer, nothing, noMembers);
        }

        internal static JsonValue OfList(List<JsonValue> items)
        {
            return new JsonValue(JsonKind.List, "", 0, false, 0, items, noMembers);
        }

        internal static JsonValue OfObject(Dictionary<string, JsonValue> members)
        {
            return new JsonValue(JsonKind.Object, "", 0, false, 0, nothing, members);
        }

        /// <summary>The elements of a list in their order; none if the value is not a list.</summary>
        public IReadOnlyList<JsonValue> Items { get { return items; } }

        /// <summary>The names of an object's members; none if the value is not an object.</summary>
        public ICollection<string> Names { get { return members.Keys; } }

        /// <summary>The value itself as a text.</summary>
        public string AsText(string what)
        {
            Expect(Kind == JsonKind.Text, what, "a text");
            return text;
        }

        /// <summary>The value itself as a whole number between two inclusive bounds.</summary>
        public long AsInteger(string what, long least, long most)
        {
            Expect(Kind == JsonKind.Number && integral && integer >= least && integer <= most, what, "a whole number from " + least + " to " + most);
            return integer;
        }

        /// <summary>The value itself as a finite number.</summary>
        public double AsNumber(string what)
        {
            Expect(Kind == JsonKind.Number, what, "a number");
            return number;
        }

        /// <summary>A member of an object; null if it is absent or JSON's null.</summary>
        public JsonValue Find(string name)
        {
            JsonValue found;
            return members.TryGetValue(name, out found) && found.Kind != JsonKind.Null ? found : null;
        }

        /// <summary>A member that must be an object.</summary>
        public JsonValue Object(string name)
        {
            JsonValue found = Find(name);
            Expect(found != null && found.Kind == JsonKind.Object, name, "an object");
            return found;
        }

        /// <summary>A required text member with a maximum number of characters.</summary>
        public string Text(string name, int most)
        {
            JsonValue found = Find(name);
            Expect(found != null && found.Kind == JsonKind.Text && found.text.Length <= most, name, "a text of at most " + most + " characters");
            return found.text;
        }

        /// <summary>A text member; "" if it is absent.</summary>
        public string OptionalText(string name, int most)
        {
            return Find(name) == null ? "" : Text(name, most);
        }

        /// <summary>A required whole number between two inclusive bounds.</summary>
        public long Integer(string name, long least, long most)
        {
            JsonValue found = Find(name);
            Expect(found != null, name, "a whole number");
            return found.AsInteger(name, least, most);
        }

        /// <summary>A whole number; a default if it is absent.</summary>
        public long OptionalInteger(string name, long least, long most, long absent)
        {
            return Find(name) == null ? absent : Integer(name, least, most);
        }

        /// <summary>A finite number; a default if it is absent.</summary>
        public double OptionalNumber(string name, double absent)
        {
            JsonValue found = Find(name);
            return found == null ? absent : found.AsNumber(name);
        }

        /// <summary>Whether a member is true; false if it is absent.</summary>
        public bool Flag(string name)
        {
            JsonValue found = Find(name);
            Expect(found == null || found.Kind == JsonKind.Boolean, name, "true or false");
            return found != null && found.number != 0;
        }

        /// <summary>The elements of a required list with a maximum length.</summary>
        public IReadOnlyList<JsonValue> List(string name, int most)
        {
            JsonValue found = Find(name);
            Expect(found != null && found.Kind == JsonKind.List && found.items.Count <= most, name, "a list of at most " + most);
            return found.items;
        }

        /// <summary>A list of an exact number of finite numbers.</summary>
        public double[] Numbers(string name, int count)
        {
            IReadOnlyList<JsonValue> list = List(name, count);
            Expect(list.Count == count, name, count + " numbers");
            var numbers = new double[count];
            for (int i = 0; i < count; i++)
            {
                numbers[i] = list[i].AsNumber(name);
            }
            return numbers;
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
