// Package openapi embeds the API document as it is written, for clients to
// read. What the server itself needs of it is generated into internal/http/api.
package openapi

import _ "embed"

// Document is openapi.yaml.
//
//go:embed openapi.yaml
var Document []byte
