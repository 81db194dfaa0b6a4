// Package tune searches the fastest way to build a kernel, within the space that its manifest
// declares, and has the ordinary gate prove the winner.
package tune
