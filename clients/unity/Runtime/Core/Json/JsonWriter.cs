using System.Globalization;
using System.Text;

namespace Volsfu.Json
{
    /// <summary>
    /// Writes one JSON text member by member, independent of the system's language. Names and values follow in the
    /// order of the calls; commas are added automatically.
    /// </summary>
    public sealed class JsonWriter
    {
        readonly StringBuilder built = new StringBuilder(256);
        bool comma;

        /// <summary>Begins an object, as a value.</summary>
        public JsonWriter Object()
        {
            return Open('{');
        }

        /// <summary>Begins an object as a member.</summary>
        public JsonWriter Object(string name)
        {
            return Name(name).Open('{');
        }

        /// <summary>Begins a list, as a value.</summary>
        public JsonWriter List()
        {
            return Open('[');
        }

        /// <summary>Begins a list as a member.</summary>
        public JsonWriter List(string name)
        {
            return Name(name).Open('[');
        }

        /// <summary>Ends the object that began last.</summary>
        public JsonWriter EndObject()
        {
            return Close('}');
        }

        /// <summary>Ends the list that began last.</summary>
        public JsonWriter EndList()
        {
            return Close(']');
        }

        /// <summary>A text member.</summary>
        public JsonWriter Member(string name, string value)
        {
            return Name(name).Value(value);
        }

        /// <summary>A text member, omitted if it is null or empty.</summary>
        public JsonWriter Optional(string name, string value)
        {
            return string.IsNullOrEmpty(value) ? this : Member(name, value);
        }

        /// <summary>A whole number.</summary>
        public JsonWriter Member(string name, long value)
        {
            return Name(name).Value(value);
        }

        /// <summary>A whole number, omitted if it is 0.</summary>
        public JsonWriter Optional(string name, long value)
        {
            return value == 0 ? this : Member(name, value);
        }

        /// <summary>A number.</summary>
        public JsonWriter Member(string name, double value)
        {
            return Name(name).Value(value);
        }

        /// <summary>A number, omitted if it is 0.</summary>
        public JsonWriter Optional(string name, double value)
        {
            return value == 0 ? this : Member(name, value);
        }

        /// <summary>True or false.</summary>
        public JsonWriter Member(string name, bool value)
        {
            Name(name).Begin();
            built.Append(value ? "true" : "false");
            return this;
        }

        /// <summary>Numbers in a list.</summary>
        public JsonWriter Numbers(string name, double[] values)
        {
            List(name);
            foreach (double value in values)
            {
                Value(value);
            }
            return EndList();
        }

        /// <summary>A text, as an element of a list.</summary>
        public JsonWriter Value(string value)
        {
            Begin();
            Quote(value);
            return this;
        }

        /// <summary>A whole number, as an element of a list.</summary>
        public JsonWriter Value(long value)
        {
            Begin();
            built.Append(value.ToString(CultureInfo.InvariantCulture));
            return this;
        }

        /// <summary>A number as an element of a list; it must be finite.</summary>
        public JsonWriter Value(double value)
        {
            if (double.IsNaN(value) || double.IsInfinity(value))
            {
                throw new ProtocolException("a number is not finite");
            }
            Begin();
            built.Append(value.ToString("R", CultureInfo.InvariantCulture));
            return this;
        }

        /// <summary>The text written so far.</summary>
        public override string ToString()
        {
            return built.ToString();
        }

        JsonWriter Name(string name)
        {
            Begin();
            Quote(name);
            built.Append(':');
            comma = false;
            return this;
        }

        void Begin()
        {
            if (comma)
            {
                built.Append(',');
            }
            comma = true;
        }

        JsonWriter Open(char bracket)
        {
            Begin();
            built.Append(bracket);
            comma = false;
            return this;
        }

        JsonWriter Close(char bracket)
        {
            built.Append(bracket);
            comma = true;
            return this;
        }

        void Quote(string text)
        {
            built.Append('"');
            foreach (char c in text)
            {
                if (c == '"' || c == '\\')
                {
                    built.Append('\\').Append(c);
                }
                else if (c < ' ')
                {
                    built.Append("\\u").Append(((int)c).ToString("x4", CultureInfo.InvariantCulture));
                }
                else
                {
                    built.Append(c);
                }
            }
            built.Append('"');
        }
    }
}
