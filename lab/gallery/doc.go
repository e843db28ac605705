// Package gallery measures a room with ordinary pictures beside volumetric figures: ten webcams, two figures and a
// screen, received over one narrow downlink. The server's allocator decides the qualities, or a fixed split of the
// downlink that knows neither the view nor the content.
package gallery
