package rgbd

import "github.com/volsfu/volsfu/pkg/pointcloud"

// projection holds the direction of the centre of every column and row: a pixel at depth d lies at (column·d, row·d, -d).
type projection struct {
	columns, rows []float32
	unit          float32
}

func newProjection(in Intrinsics) projection {
	p := projection{columns: make([]float32, in.Width), rows: make([]float32, in.Height), unit: float32(in.DepthUnit)}
	for u := range p.columns {
		p.columns[u] = float32((float64(u) + 0.5 - in.CX) / in.FX)
	}
	for v := range p.rows {
		p.rows[v] = float32((in.CY - float64(v) - 0.5) / in.FY) // image rows go down, y goes up
	}
	return p
}

// project appends a point for every pixel that has a depth.
func (p *projection) project(w *workspace, into *pointcloud.Cloud) {
	for v, row := range p.rows {
		depths, colors := w.depth[v*w.width:][:w.width], w.color[v*w.width:][:w.width]
		for u, raw := range depths {
			if raw == 0 {
				continue
			}
			d := float32(raw) * p.unit
			into.Append([3]float32{p.columns[u] * d, row * d, -d}, colors[u])
		}
	}
}
