// The reference page of the API: Swagger UI over this server's own document.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
});
