{% macro symbol(name, kind, class, options) %}
<symbol name="{{ name }}" type="{{ kind }}" alpha="1" clip_to_extent="1"><layer class="{{ class }}" enabled="1" pass="0" locked="0"><Option type="Map">
{% for key, value in options.items() %}
<Option name="{{ key }}" type="QString" value="{{ value }}"/>
{% endfor %}
</Option></layer></symbol>
{% endmacro %}
{% macro fill(name, colour, edge="255,255,255,80", width="0.1", style="solid") %}
{{ symbol(name, "fill", "SimpleFill", {"color": colour, "style": style, "outline_color": edge, "outline_width": width, "outline_style": "solid"}) }}
{% endmacro %}
{% macro marker(name, colour, shape, size) %}
{{ symbol(name, "marker", "SimpleMarker", {"color": colour, "name": shape, "size": size, "size_unit": "MM", "outline_color": "255,255,255,255", "outline_width": "0.3"}) }}
{% endmacro %}
{% set label = {"queries": "query", "tours": "crew"}.get(layer, "") %}
<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>
<qgis version="3.28" styleCategories="Symbology|Labeling" labelsEnabled="{{ 1 if label else 0 }}">
{% if layer == "cells" %}
<renderer-v2 type="graduatedSymbol" attr="probability" graduatedMethod="GraduatedColor"><ranges>
{% for step in steps %}
<range symbol="{{ loop.index0 }}" lower="{{ '%.6f' % step.low }}" upper="{{ '%.6f' % step.high }}" render="true" label="{{ '%.2f to %.2f' % (step.low, step.high) }}"/>
{% endfor %}
</ranges><symbols>
{% for step in steps %}
{{ fill(loop.index0, step.colour) }}
{% endfor %}
{% elif layer == "measurements" %}
<renderer-v2 type="RuleRenderer"><rules key="root">
<rule key="hit" filter="&quot;outcome&quot; &gt; 0" symbol="0" label="found"/>
<rule key="miss" filter="&quot;outcome&quot; = 0" symbol="1" label="nothing"/>
</rules><symbols>
{{ marker("0", "47,180,87,255", "star", "4.2") }}
{{ marker("1", "216,67,59,255", "cross2", "2.6") }}
{% elif layer == "area" %}
<renderer-v2 type="RuleRenderer"><rules key="root">
<rule key="outline" filter="&quot;zone&quot; = 'outline'" symbol="0" label="area"/>
<rule key="no_go" filter="&quot;zone&quot; = 'no_go'" symbol="1" label="no-go"/>
</rules><symbols>
{{ fill("0", "0,0,0,0", "43,74,47,255", "0.6", "no") }}
{{ fill("1", "216,67,59,90", "216,67,59,255", style="b_diagonal") }}
{% elif layer == "queries" %}
<renderer-v2 type="singleSymbol"><symbols>
{{ marker("0", "31,95,191,255", "circle", "3.2") }}
{% else %}
<renderer-v2 type="singleSymbol"><symbols>
{{ symbol("0", "line", "SimpleLine", {"line_color": "31,95,191,255", "line_width": "0.8", "line_style": "solid"}) }}
{% endif %}
</symbols></renderer-v2>
{% if label %}
<labeling type="simple"><settings><text-style fontSize="9" fieldName="{{ label }}"/><placement placement="6" dist="1"/></settings></labeling>
{% endif %}
</qgis>
