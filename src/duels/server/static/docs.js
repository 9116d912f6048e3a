/** Swagger UI on this server's own description of itself. */

const csrf = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: false, // its links would stand inside of buttons
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
  requestInterceptor: (request) => {
    request.headers["X-CSRF-Token"] = csrf;
    return request;
  },
});
