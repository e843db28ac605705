// Points as round squares of their own size, for the Universal Render Pipeline.
Shader "Volsfu/Points URP"
{
    SubShader
    {
        Tags { "RenderPipeline" = "UniversalPipeline" "RenderType" = "Opaque" "Queue" = "AlphaTest" }
        Pass
        {
            Tags { "LightMode" = "UniversalForward" }
            Cull Off
            HLSLPROGRAM
            #pragma target 4.5
            #pragma vertex vert
            #pragma fragment frag
            #include "Packages/com.unity.render-pipelines.universal/ShaderLibrary/Core.hlsl"
            #include "VolsfuPoints.hlsl"

            struct Varyings
            {
                float4 position : SV_POSITION;
                float4 color : COLOR;
                float2 corner : TEXCOORD0;
            };

            Varyings vert(uint vertex : SV_VertexID)
            {
                VolsfuPoint p = VolsfuCorner(vertex, UNITY_MATRIX_V[0].xyz, UNITY_MATRIX_V[1].xyz);
                Varyings o;
                o.position = mul(UNITY_MATRIX_VP, float4(p.world, 1));
                o.color = p.color;
                #ifndef UNITY_COLORSPACE_GAMMA
                o.color.rgb = VolsfuLinear(o.color.rgb);
                #endif
                o.corner = p.corner;
                return o;
            }

            float4 frag(Varyings i) : SV_Target
            {
                clip(1 - dot(i.corner, i.corner));
                return i.color;
            }
            ENDHLSL
        }
    }
}
