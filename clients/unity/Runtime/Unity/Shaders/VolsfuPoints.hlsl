// Squares for points, two triangles each, from structured buffers. The components of Volsfu/Points set the variables.
#ifndef VOLSFU_POINTS_INCLUDED
#define VOLSFU_POINTS_INCLUDED

StructuredBuffer<float3> _Positions; // the room's coordinates: right-handed, z towards the viewer
StructuredBuffer<uint> _Colors;      // red, green, blue, alpha from the lowest byte; sRGB
float4x4 _ToWorld;
float4 _Camera; // w is 1 for points of a depth camera
float4 _Axis;
float _Size;

static const float2 volsfu_corners[6] = {float2(-1, -1), float2(-1, 1), float2(1, 1), float2(-1, -1), float2(1, 1), float2(1, -1)};

struct VolsfuPoint
{
    float3 world;
    float2 corner;
    float4 color;
};

// Returns the corner of a square that faces the viewer. right and up are the viewer's in the world, and of length 1.
VolsfuPoint VolsfuCorner(uint vertex, float3 right, float3 up)
{
    VolsfuPoint p;
    float3 at = _Positions[vertex / 6];
    uint color = _Colors[vertex / 6];
    // A pixel of a depth camera is as wide as its depth over the focal length. Squares of a surface that is seen from another
    // side than the camera's overlap, so that there are no holes up to 45 degrees: hence the factor of the square root of 2.
    float size = _Camera.w > 0 ? 1.4142 * dot(at - _Camera.xyz, _Axis.xyz) : _Size;
    float scale = length(_ToWorld._m00_m10_m20);
    p.corner = volsfu_corners[vertex % 6];
    // Unity's space is left-handed.
    p.world = mul(_ToWorld, float4(at.x, at.y, -at.z, 1)).xyz + 0.5 * size * scale * (p.corner.x * right + p.corner.y * up);
    p.color = float4(color & 255, color >> 8 & 255, color >> 16 & 255, 255) / 255;
    return p;
}

// Converts a colour from sRGB, for projects in linear colour space.
float3 VolsfuLinear(float3 c)
{
    return c * (c * (c * 0.305306011 + 0.682171111) + 0.012522878);
}

#endif
