using System;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Volsfu.Signalling;

namespace Volsfu.Tests
{
    static class JsonTests
    {
        public static void ReadsWhatIsWritten()
        {
            JObject written = new JObject().Member("text", "quote \" back \\ line \n é 😀").Member("whole", 9007199254740993L).Number("half", -0.5)
                .Member("yes", true).Optional("none", "").Optional("zero", 0L).Numbers("list", new[] { 1, 2.5, -3 }).Member("in", new JObject().Member("empty", ""))
                .Member("objects", new JArray { new JObject(), new JObject().Member("a", 1L) });
            JToken json = JsonReading.Parse(written.ToString(Formatting.None));
            Check.Equal("quote \" back \\ line \n é 😀", json.Text("text", 100), "text");
            Check.Equal(9007199254740993L, json.Integer("whole", 0, long.MaxValue), "whole number beyond a double's");
            Check.Equal(-0.5, json.OptionalNumber("half", 0), "half");
            Check.True(json.Flag("yes") && !json.Flag("no"), "flags");
            Check.True(json.Find("none") == null && json.Find("zero") == null, "what is left out is there");
            Check.Equal(2.5, json.Numbers("list", 3)[1], "second of the list");
            Check.Equal("", json.Object("in").Text("empty", 0), "member of the object within");
            Check.Equal(1L, json.List("objects", 2)[1].Integer("a", 0, 2), "member of the second object");
            Check.Refuses(() => new JObject().Number("a", double.NaN), "a number that is none");
            Check.Refuses(() => new JObject().Numbers("a", new[] { double.PositiveInfinity }), "a list with an infinite number");
        }

        public static void ReadsAllOfTheGrammar()
        {
            JToken json = JsonReading.Parse(" \t\r\n{ \"a\" : [ ] , \"b\" : { } , \"c\":null,\"d\":[1E2,-0,0.5e-1,true,false,null,\"\\u0041\\/\\b\\f\\n\\r\\t\\ud83d\\ude00\"] } ");
            Check.True(json.Find("c") == null, "null counts as absent");
            Check.Equal(0, json.List("c", 1).Count, "null counts as an empty list");
            Check.Equal(100.0, json.List("d", 7)[0].AsNumber("d"), "exponent");
            Check.Equal(0.0, json.List("d", 7)[1].AsNumber("d"), "a whole number as a number");
            Check.Equal("A/\b\f\n\r\t😀", json.List("d", 7)[6].AsText("d"), "escapes");
            Check.Equal("2026-11-28T07:00:00+01:00", JsonReading.Parse("[\"2026-11-28T07:00:00+01:00\"]")[0].AsText("a"), "a text that looks like a date");
        }

        public static void RefusesTextsThatAreNoJson()
        {
            string[] wrong =
            {
                "", " ", "{", "}", "[", "[1", "[1,", "{\"a\"}", "{\"a\":}", "{} {}", "-", "+1", "1e", "1e+", "tru", "truE", "nul", "\"", "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u12",
                "// x\n1", "[1 2]", "\0", "{\"a\":\0}", "08", "0xg"
            };
            foreach (string text in wrong)
            {
                Check.Refuses(() => JsonReading.Parse(text), "the text " + text);
            }
            Check.Refuses(() => JsonReading.Parse(new string('[', 100000)), "deep nesting");
            string deepest = new string('[', JsonReading.MaxDepth) + new string(']', JsonReading.MaxDepth);
            Check.True(JsonReading.Parse(deepest) is JArray, "the deepest nesting");
            Check.Refuses(() => JsonReading.Parse("[" + deepest + "]"), "one level more");
        }

        public static void ChecksWhatIsAskedFor()
        {
            JToken json = JsonReading.Parse("{\"text\":\"four\",\"number\":3,\"half\":0.5,\"list\":[1,\"x\"],\"object\":{},\"huge\":123456789012345678901234567890,\"none\":NaN}");
            Check.Refuses(() => json.Text("text", 3), "a text that is too long");
            Check.Refuses(() => json.Text("number", 3), "a number for a text");
            Check.Refuses(() => json.Text("absent", 3), "an absent text");
            Check.Refuses(() => json.Integer("half", 0, 1), "a half for a whole number");
            Check.Refuses(() => json.Integer("number", 4, 5), "a number below the bound");
            Check.Refuses(() => json.Integer("huge", long.MinValue, long.MaxValue), "a number beyond 64 bits");
            Check.Refuses(() => json.OptionalInteger("number", 0, 2, 0), "a number above the bound");
            Check.Refuses(() => json.OptionalNumber("none", 0), "a number that is none");
            Check.Refuses(() => json.OptionalNumber("text", 0), "a text for a number");
            Check.Refuses(() => JsonReading.Parse("{\"a\":1e999}").OptionalNumber("a", 0), "an infinite number");
            Check.Refuses(() => json.List("list", 1), "a list that is too long");
            Check.Refuses(() => json.List("object", 1), "an object for a list");
            Check.Refuses(() => json.Numbers("list", 2), "a text among numbers");
            Check.Refuses(() => json.Numbers("absent", 2), "absent numbers");
            Check.Refuses(() => json.Object("list"), "a list for an object");
            Check.Refuses(() => json.Flag("number"), "a number for a flag");
            Check.Refuses(() => json.List("list", 2)[0].Text("a", 3), "a member of a number");
            Check.Equal(7L, json.OptionalInteger("absent", 0, 9, 7), "what stands for an absent number");
        }

        /// <summary>Randomly damaged texts are parsed or rejected; nothing else may happen.</summary>
        public static void SurvivesSpoiltTexts()
        {
            const string whole = "{\"type\":\"sending\",\"slots\":[{\"mid\":\"4\",\"generation\":1,\"quality\":-1,\"x\":[1.5e3,true,null,\"\\u00e9\"]}]}";
            var random = new Random(1);
            for (int i = 0; i < 20000; i++)
            {
                var spoilt = new StringBuilder(whole);
                for (int n = random.Next(1, 6); n > 0; n--)
                {
                    spoilt[random.Next(spoilt.Length)] = "{}[]\",:\\u0e-.5tn \0/*'x8N("[random.Next(25)];
                }
                spoilt.Length = random.Next(spoilt.Length + 1);
                try
                {
                    JsonReading.Parse(spoilt.ToString());
                }
                catch (ProtocolException)
                {
                    continue;
                }
            }
        }
    }
}
