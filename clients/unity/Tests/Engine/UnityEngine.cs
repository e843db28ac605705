// Declarations of the parts of Unity's engine used by Runtime/Unity and the samples, for compiling them without Unity.
// Nothing runs.
using System;
using System.Collections.Generic;

namespace UnityEngine
{
    public class Object
    {
        public static implicit operator bool(Object exists) { return exists != null; }
        public static void Destroy(Object what) { throw new NotSupportedException(); }
    }

    public class Component : Object
    {
        public Transform transform { get { throw new NotSupportedException(); } }
        public T GetComponent<T>() { throw new NotSupportedException(); }
    }

    public class MonoBehaviour : Component
    {
        public bool enabled { set { throw new NotSupportedException(); } }
    }

    public sealed class GameObject : Object
    {
        public GameObject(string name) { }
        public Transform transform { get { throw new NotSupportedException(); } }
        public void SetActive(bool active) { throw new NotSupportedException(); }
        public T AddComponent<T>() where T : Component { throw new NotSupportedException(); }
    }

    public class Transform : Component
    {
        public Vector3 position { get { throw new NotSupportedException(); } }
        public Vector3 lossyScale { get { throw new NotSupportedException(); } }
        public Quaternion rotation { get { throw new NotSupportedException(); } }
        public Vector3 localPosition { set { throw new NotSupportedException(); } }
        public Vector3 localScale { set { throw new NotSupportedException(); } }
        public Quaternion localRotation { set { throw new NotSupportedException(); } }
        public Matrix4x4 localToWorldMatrix { get { throw new NotSupportedException(); } }
        public void SetParent(Transform parent, bool worldPositionStays) { throw new NotSupportedException(); }
    }

    public class Camera : Component
    {
        public float fieldOfView { get { throw new NotSupportedException(); } }
        public float aspect { get { throw new NotSupportedException(); } }
    }

    public struct Vector3
    {
        public float x, y, z;

        public Vector3(float x, float y, float z)
        {
            this.x = x;
            this.y = y;
            this.z = z;
        }
    }

    public struct Vector4
    {
        public Vector4(float x, float y, float z, float w) { }
    }

    public struct Matrix4x4 { }

    public class Material : Object { }

    public sealed class MaterialPropertyBlock
    {
        public void SetVector(string name, Vector4 value) { throw new NotSupportedException(); }
        public void SetMatrix(string name, Matrix4x4 value) { throw new NotSupportedException(); }
        public void SetFloat(string name, float value) { throw new NotSupportedException(); }
        public void SetBuffer(string name, ComputeBuffer value) { throw new NotSupportedException(); }
    }

    public sealed class ComputeBuffer
    {
        public ComputeBuffer(int count, int stride) { }
        public int count { get { throw new NotSupportedException(); } }
        public void SetData(Array data, int managedBufferStartIndex, int computeBufferStartIndex, int count) { throw new NotSupportedException(); }
        public void Release() { throw new NotSupportedException(); }
    }

    public static class Graphics
    {
        public static void DrawProcedural(Material material, Bounds bounds, MeshTopology topology, int vertexCount, int instanceCount = 1,
            Camera camera = null, MaterialPropertyBlock properties = null)
        {
            throw new NotSupportedException();
        }
    }

    public class AudioClip : Object
    {
        public delegate void PCMReaderCallback(float[] data);

        public static AudioClip Create(string name, int lengthSamples, int channels, int frequency, bool stream, PCMReaderCallback pcmreadercallback)
        {
            throw new NotSupportedException();
        }

        public bool GetData(float[] data, int offsetSamples) { throw new NotSupportedException(); }
    }

    public class AudioSource : Component
    {
        public AudioClip clip { set { throw new NotSupportedException(); } }
        public bool loop { set { throw new NotSupportedException(); } }
        public void Play() { throw new NotSupportedException(); }
        public void Stop() { throw new NotSupportedException(); }
    }

    public static class AudioSettings
    {
        public static int outputSampleRate { get { throw new NotSupportedException(); } }
    }

    public static class Microphone
    {
        public static AudioClip Start(string deviceName, bool loop, int lengthSec, int frequency) { throw new NotSupportedException(); }
        public static int GetPosition(string deviceName) { throw new NotSupportedException(); }
        public static void End(string deviceName) { throw new NotSupportedException(); }
    }

    public struct Quaternion
    {
        public float x, y, z, w;

        public Quaternion(float x, float y, float z, float w)
        {
            this.x = x;
            this.y = y;
            this.z = z;
            this.w = w;
        }
    }

    // Names of the engine that are not used here, so that the package does not define them.
    public struct Pose { }

    public enum QualityLevel { }

    public struct Bounds
    {
        public Bounds(Vector3 center, Vector3 size) { }
        public Vector3 min { get { throw new NotSupportedException(); } }
        public Vector3 max { get { throw new NotSupportedException(); } }
    }

    public struct Color32
    {
        public byte r, g, b, a;

        public Color32(byte r, byte g, byte b, byte a)
        {
            this.r = r;
            this.g = g;
            this.b = b;
            this.a = a;
        }
    }

    public enum MeshTopology { Triangles = 0, Points = 5 }

    public class Mesh : Object
    {
        public Rendering.IndexFormat indexFormat { set { throw new NotSupportedException(); } }
        public void Clear() { throw new NotSupportedException(); }
        public void MarkDynamic() { throw new NotSupportedException(); }
        public void SetVertices(List<Vector3> vertices) { throw new NotSupportedException(); }
        public void SetColors(List<Color32> colors) { throw new NotSupportedException(); }
        public void SetIndices(List<int> indices, MeshTopology topology, int submesh) { throw new NotSupportedException(); }
    }

    public class MeshFilter : Component
    {
        public Mesh sharedMesh { set { throw new NotSupportedException(); } }
    }

    public static class Debug
    {
        public static void Log(object message, Object context) { throw new NotSupportedException(); }
        public static void LogWarning(object message, Object context) { throw new NotSupportedException(); }
        public static void LogError(object message, Object context) { throw new NotSupportedException(); }
    }

    public static class Mathf
    {
        public static float Clamp(float value, float least, float most) { throw new NotSupportedException(); }
    }

    public static class Time
    {
        public static float unscaledTime { get { throw new NotSupportedException(); } }
    }

    public enum RuntimePlatform { WindowsPlayer, WindowsEditor }

    public static class Application
    {
        public static RuntimePlatform platform { get { throw new NotSupportedException(); } }
        public static string streamingAssetsPath { get { throw new NotSupportedException(); } }
    }

    public sealed class AddComponentMenu : Attribute
    {
        public AddComponentMenu(string name) { }
    }

    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string text) { }
    }

    public sealed class RangeAttribute : Attribute
    {
        public RangeAttribute(float least, float most) { }
    }

    [AttributeUsage(AttributeTargets.Class, AllowMultiple = true)]
    public sealed class RequireComponent : Attribute
    {
        public RequireComponent(Type type) { }
    }
}

namespace UnityEngine.Rendering
{
    public enum IndexFormat { UInt16, UInt32 }
}
