using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Volsfu.Json
{
    /// <summary>
    /// Parses JSON by RFC 8259 without extensions: no comments, no trailing commas, no duplicate members, nesting up to
    /// a limit. For any text, it throws only ProtocolException.
    /// </summary>
    public sealed class JsonReader
    {
        /// <summary>The maximum nesting of lists and objects. Signalling v1 needs seven levels.</summary>
        public const int MaxDepth = 32;

        readonly string text;
        int at;

        JsonReader(string text)
        {
            this.text = text;
        }

        /// <summary>Parses a text with a single value.</summary>
        public static JsonValue Parse(string text)
        {
            var reader = new JsonReader(text);
            JsonValue value = reader.Value(0);
            reader.Space();
            if (reader.at != text.Length)
            {
                throw reader.Wrong("the end");
            }
            return value;
        }

        JsonValue Value(int depth)
        {
            Space();
            switch (Peek())
            {
                case '{': return Object(depth + 1);
                case '[': return List(depth + 1);
                case '"': return JsonValue.OfText(Text());
                case 't': return Word("true", JsonValue.True);
                case 'f': return Word("false", JsonValue.False);
                case 'n': return Word("null", JsonValue.Null);
                default: return Number();
            }
        }

        JsonValue Object(int depth)
        {
            Enter('{', depth);
            var members = new Dictionary<string, JsonValue>();
            if (Ends('}'))
            {
                return JsonValue.OfObject(members);
            }
            do
            {
                Space();
                if (Peek() != '"')
                {
                    throw Wrong("a name");
                }
                string name = Text();
                Space();
                Take(':');
                JsonValue value = Value(depth);
                if (members.ContainsKey(name))
                {
                    throw Wrong("no name twice");
                }
                members.Add(name, value);
            } while (Continues('}'));
            return JsonValue.OfObject(members);
        }

        JsonValue List(int depth)
        {
            Enter('[', depth);
            var items = new List<JsonValue>();
            if (Ends(']'))
            {
                return JsonValue.OfList(items);
            }
            do
            {
                items.Add(Value(depth));
            } while (Continues(']'));
            return JsonValue.OfList(items);
        }

        void Enter(char bracket, int depth)
        {
            Take(bracket);
            if (depth > MaxDepth)
            {
                throw Wrong("at most " + MaxDepth + " levels");
            }
        }

        bool Ends(char bracket)
        {
            Space();
            if (Peek() != bracket)
            {
                return false;
            }
            at++;
            return true;
        }

        bool Continues(char bracket)
        {
            if (Ends(bracket))
            {
                return false;
            }
            Take(',');
            return true;
        }

        JsonValue Word(string word, JsonValue value)
        {
            if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0)
            {
                throw Wrong("a value");
            }
            at += word.Length;
            return value;
        }

        JsonValue Number()
        {
            int begin = at;
            if (Peek() == '-')
            {
                at++;
            }
            int digits = at;
            Digits();
            if (text[digits] == '0' && at > digits + 1)
            {
                throw Wrong("no leading zero");
            }
            bool integral = true;
            if (Peek() == '.')
            {
                integral = false;
                at++;
                Digits();
            }
            if (Peek() == 'e' || Peek() == 'E')
            {
                integral = false;
                at++;
                if (Peek() == '+' || Peek() == '-')
                {
                    at++;
                }
                Digits();
            }
            string digitsText = text.Substring(begin, at - begin);
            double number;
            if (!double.TryParse(digitsText, NumberStyles.Float, CultureInfo.InvariantCulture, out number) || double.IsInfinity(number))
            {
                throw Wrong("a number that fits 64 bits");
            }
            long integer = 0;
            integral = integral && long.TryParse(digitsText, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out integer);
            return JsonValue.OfNumber(number, integral, integer);
        }

        void Digits()
        {
            int begin = at;
            while (Peek() >= '0' && Peek() <= '9')
            {
                at++;
            }
            if (at == begin)
            {
                throw Wrong("a value");
            }
        }

        string Text()
        {
            Take('"');
            int plain = at;
            while (Peek() != '"' && Peek() != '\\')
            {
                Plain();
            }
            if (Peek() == '"')
            {
                return text.Substring(plain, at++ - plain);
            }
            var built = new StringBuilder(text, plain, at - plain, at - plain + 32);
            while (Peek() != '"')
            {
                if (Peek() == '\\')
                {
                    at++;
                    built.Append(Escaped());
                }
                else
                {
                    built.Append(Plain());
                }
            }
            at++;
            return built.ToString();
        }

        char Plain()
        {
            // Peek returns 0 at the end; texts must not contain other control characters either.
            if (Peek() < ' ')
            {
                throw Wrong("the end of a text");
            }
            return text[at++];
        }

        char Escaped()
        {
            char c = Peek();
            at++;
            switch (c)
            {
                case '"': return '"';
                case '\\': return '\\';
                case '/': return '/';
                case 'b': return '\b';
                case 'f': return '\f';
                case 'n': return '\n';
                case 'r': return '\r';
                case 't': return '\t';
                case 'u': break;
                default: throw Wrong("an escape sequence");
            }
            int code = 0;
            for (int i = 0; i < 4; i++)
            {
                int digit = "0123456789abcdef".IndexOf(char.ToLowerInvariant(Peek()));
                if (digit < 0)
                {
                    throw Wrong("four hexadecimal digits");
                }
                code = code * 16 + digit;
                at++;
            }
            return (char)code;
        }

        void Space()
        {
            while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')
            {
                at++;
            }
        }

        char Peek()
        {
            return at < text.Length ? text[at] : '\0';
        }

        void Take(char c)
        {
            if (Peek() != c)
            {
                throw Wrong("'" + c + "'");
            }
            at++;
        }

        ProtocolException Wrong(string expected)
        {
            return new ProtocolException("JSON, character " + at + ": expected " + expected);
        }
    }
}
