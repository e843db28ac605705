// Package gallery measures a room with ordinary pictures beside volumetric figures: ten webcams, two figures and a
// screen, received over one narrow downlink. The qualities are decided by the server's allocator, or fixed by a split of
// the downlink that knows neither the view nor the content.
package gallery
