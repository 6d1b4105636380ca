SwaggerUIBundle({
  url: "openapi.yaml",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  validatorUrl: null, // else a badge from another host
  persistAuthorization: false, // keys are gone with the page
});
